import type { Sort } from "../../ui/table-columns.ts";

/** An order as it stands in the address: the column, with `-` before it when it goes down. */
export const sortOf = (text: string | undefined, usual: string): Sort => {
  const given = text ?? usual;
  return given.startsWith("-") ? { by: given.slice(1), descending: true } : { by: given, descending: false };
};

/** @returns undefined for the usual order, which needs no mention */
export const sortText = ({ by, descending }: Sort, usual: string): string | undefined => {
  const text = descending ? `-${by}` : by;
  return text === usual ? undefined : text;
};
