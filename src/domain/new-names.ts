/** The names of new things, and new names of old ones: checked in the transaction that writes them. */
import { comparableLabel, labelFault } from '../base/label.ts';
import { Problem } from '../base/problem.ts';

/**
 * Throws `invalid_request` for a name that looks like another: with invisible characters, or letters of several
 * scripts. Schemas do not check this, because a stored name must stay valid where a change repeats it.
 */
export function refuseUnfitName(name: string): void {
  const message = labelFault(name);
  if (message === undefined) return;
  throw new Problem('invalid_request', { detail: `name: ${message}.`, errors: [{ path: 'name', message }] });
}

/** The name among those of `rows` that reads like `name`, of which there must be few: issuers, channels. */
export function alikeName(rows: readonly { readonly name: string }[], name: string): string | undefined {
  const wanted = comparableLabel(name);
  return rows.find((row) => comparableLabel(row.name) === wanted)?.name;
}
