/** Why a text is no point in time, in the words that pydantic has from its parser: what it looks for is `YYYY-MM-DD`, and more. */
export function datetimeFault(text: string): string {
  if (text.length < 10) return "input is too short";
  if (!/^\d{4}/.test(text)) return "invalid character in year";
  if (text[4] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d$/.test(text.slice(5, 7))) return "invalid character in month";
  if (text[7] !== "-") return "invalid date separator, expected `-`";
  if (!/^\d\d$/.test(text.slice(8, 10))) return "invalid character in day";
  const [year, month, day] = [text.slice(0, 4), text.slice(5, 7), text.slice(8, 10)].map(Number) as [
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12) return "month value is outside expected range of 1-12";
  if (day < 1 || day > daysOf(year, month)) return "day value is outside expected range";
  return "unexpected extra characters at the end of the input";
}

/** The day before the first of the next month. */
const daysOf = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();
