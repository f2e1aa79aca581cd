/** Dollars are added as integers of 1e-12: exact up to $9,007, and as precise as the number itself above. */
export const picoOf = (usd: number): number => Math.round(usd * 1e12);

export const usdOf = (pico: number): number => pico / 1e12;
