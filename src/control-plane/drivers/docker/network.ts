import type { NetworkCreateOptions, NetworkInspectInfo } from "dockerode";
import { LABELS } from "./container.ts";
import { type Engine, ifThere, requestParts } from "./engine.ts";

export const ownNetworkName = (service_id: string): string => `threadmill-${service_id}`;

/** The name of the interface, for rules of the firewall. Linux allows 15 characters. */
export const bridgeOf = (service_id: string): string => `tm-${service_id.replaceAll("-", "").slice(0, 12)}`;

/** Creates the service's network, in which containers do not reach each other, if it does not exist. */
export async function ensureOwnNetwork(engine: Engine, service_id: string): Promise<void> {
  const Name = ownNetworkName(service_id);
  const find = (): Promise<NetworkInspectInfo | undefined> =>
    engine.ask((docker) => ifThere(docker.getNetwork(Name).inspect()));
  if (await find()) return;
  const options = requestParts<NetworkCreateOptions>(
    {},
    {
      Name,
      Driver: "bridge",
      CheckDuplicate: true,
      // The rules that keep containers apart are those of IPv4.
      EnableIPv6: false,
      Labels: { [LABELS.service]: service_id },
      Options: {
        "com.docker.network.bridge.name": bridgeOf(service_id),
        "com.docker.network.bridge.enable_icc": "false",
        "com.docker.network.bridge.host_binding_ipv4": "127.0.0.1",
      },
    },
  );
  try {
    await engine.ask((docker) => docker.createNetwork(options));
  } catch (error) {
    // A concurrent start may have created it.
    if (!(await find())) throw error;
  }
}
