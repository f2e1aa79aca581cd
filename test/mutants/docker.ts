import type { Mutant } from "./mutants.ts";

const suite = (name: string): string[] => [`test/security/docker-${name}.test.ts`];

/** Guards of the Docker driver. */
export const DOCKER_MUTANTS: readonly Mutant[] = [
  {
    name: "docker: secrets are in the URL of a request to the engine",
    file: "src/control-plane/drivers/docker/engine.ts",
    replace: ["({ _query: query, _body: body }) as T", "({ ...query, ...body }) as T"],
    suites: suite("containers"),
  },
  {
    name: "docker: a port that another program has taken makes a revision fail",
    file: "src/cli/main.ts",
    replace: ['code === "EADDRINUSE" ? 1 : USAGE_STATUS', "USAGE_STATUS"],
    suites: ["test/control/docker-driver.test.ts"],
  },
  {
    name: "docker: containers keep their capabilities",
    file: "src/control-plane/drivers/docker/container.ts",
    replace: ['      CapDrop: ["ALL"],\n', ""],
    suites: suite("containers"),
  },
  {
    name: "docker: containers run as root",
    file: "src/control-plane/drivers/docker/instances.ts",
    replace: ["if (!isRoot(image_user)) return undefined;", "if (folder) return undefined;"],
    suites: suite("containers"),
  },
  {
    name: "docker: containers write to their root file system",
    file: "src/control-plane/drivers/docker/container.ts",
    replace: [
      'image.Config.Labels?.[WRITABLE_ROOT] !== "true"',
      "image.Config.Labels?.[WRITABLE_ROOT] === WRITABLE_ROOT",
    ],
    suites: suite("containers"),
  },
  {
    name: "docker: a label of an image sets the port of the router",
    file: "src/control-plane/drivers/docker/container.ts",
    replace: [
      '      [LABELS.port]: isOnHost ? String(endpoint.port) : "",\n',
      "      ...(isOnHost && { [LABELS.port]: String(endpoint.port) }),\n",
    ],
    suites: suite("containers"),
  },
  {
    name: "docker: containers reach each other",
    file: "src/control-plane/drivers/docker/network.ts",
    replace: ['enable_icc": "false"', 'enable_icc": "true"'],
    suites: suite("network"),
  },
  {
    name: "docker: containers reach ports of the machine",
    file: "src/control-plane/drivers/docker/network.ts",
    replace: ["} -j REJECT\n-A", "} -j RETURN\n-A"],
    suites: suite("network"),
  },
  {
    name: "docker: containers reach the metadata service of a cloud",
    file: "src/control-plane/drivers/docker/network.ts",
    replace: ["} -j REJECT\nCOMMIT", "} -j RETURN\nCOMMIT"],
    suites: suite("network"),
  },
  {
    name: "docker: images of any registry are deployed",
    file: "src/control-plane/drivers/image-name.ts",
    replace: ["if (isListed(name, registries)) return name;", "return name;"],
    suites: suite("images"),
  },
  {
    name: "docker: access to an image on the engine is not checked at its registry",
    file: "src/control-plane/drivers/docker/images.ts",
    replace: [
      "if (name.host !== LOCAL_HOST) return",
      "if (name.host !== LOCAL_HOST && !(await this.#inspect(image))) return",
    ],
    suites: suite("images"),
  },
];
