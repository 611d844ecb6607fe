/** Messages of errors as sentences for people. */

/**
 * The text with a capital at its start, unless it begins with a name or quoted text, and with a period at its end,
 * which must not become part of a URL.
 */
export function sentence(text: string): string {
  const isOurs =
    /^(a|an|cannot|certificates|external|failed|invalid|issuer|it|missing|no|not|query|the|there|unexpected|unknown|waiting) /.test(
      text,
    );
  const capital = isOurs ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
  if (/[.!?]$/.test(capital)) return capital;
  const last = capital.split(/\s/).at(-1) ?? '';
  return /:\/\/./.test(last) ? `${capital} .` : `${capital}.`;
}
