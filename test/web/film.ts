import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";

const SECONDS_PER_PICTURE = 3;
const COLOURS = 96;

/**
 * A film of pictures with captions, as an animated GIF. `SCREENSHOTS=docs/images npm run test:all -- test/web/failing-row.test.ts` renews
 * that of the README, for which ffmpeg is required (Debian: apt install ffmpeg). Without a folder, nothing is taken.
 */
export class Film {
  readonly #folder: string | undefined;
  readonly #name: string;
  #pictures = 0;

  constructor(folder: string | undefined, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  /** @param next what the next step clicks; it is framed */
  async take(page: Page, caption: string, next: Locator): Promise<void> {
    if (!this.#folder) return;
    mkdirSync(this.#folder, { recursive: true });
    await next.scrollIntoViewIfNeeded();
    const box = await next.boundingBox();
    if (!box) throw new Error(`What "${caption}" frames is not visible.`);
    const place = `left: ${box.x - 6}px; top: ${box.y - 6}px; width: ${box.width + 12}px; height: ${box.height + 12}px`;
    const style = `
      html::before, html::after { position: fixed; z-index: 9999; box-sizing: border-box }
      html::before { content: ""; ${place}; border: 3px solid #dc2626; border-radius: 8px }
      html::after { content: ${JSON.stringify(caption)}; inset: auto 0 0 0; padding: 14px; color: #fff; background: #111827;
        font: 600 22px sans-serif; text-align: center }`;
    await page.screenshot({ style, path: this.#picture(String(++this.#pictures).padStart(2, "0")) });
  }

  end(): void {
    if (!this.#folder) return;
    const palette = `split[a][b];[a]palettegen=max_colors=${COLOURS}[p];[b][p]paletteuse=dither=none`;
    const filter = `scale=1024:-1:flags=lanczos,${palette}`;
    const input = ["-framerate", `1/${SECONDS_PER_PICTURE}`, "-i", this.#picture("%02d")];
    const file = join(this.#folder, `${this.#name}.gif`);
    execFileSync("ffmpeg", ["-y", "-loglevel", "error", ...input, "-filter_complex", filter, file]);
    for (let number = 1; number <= this.#pictures; number++) rmSync(this.#picture(String(number).padStart(2, "0")));
  }

  #picture(number: string): string {
    return join(this.#folder ?? "", `${this.#name}-${number}.png`);
  }
}
