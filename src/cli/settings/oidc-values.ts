/** Values of the claim that decides about the rights of people, as the settings list them. */
import { readObjectLabel } from '../../base/object-label.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { profileReference } from '../../domain/input-strings.ts';
import type { ProfileValue, ReachValue } from '../../domain/oidc/provider-settings.ts';
import type { Found } from './setting-values.ts';

/** A value ends at the last colon that a label, or * for everything, follows. */
export function listedReach(found: Found | undefined): readonly ReachValue[] {
  if (found === undefined) return [];
  return listed(found).map((entry) => {
    const [, value, text] = /^(.+):(\*|[^:=]+=[^=]*)$/s.exec(entry) ?? [];
    const read = text === undefined || text === '*' ? undefined : readObjectLabel(text);
    if (value !== undefined && (read === undefined || 'label' in read)) return { value, label: read?.label };
    const fault = read !== undefined && 'fault' in read ? `: ${read.fault}` : '';
    throw new OperatorError(`${found.from}: "${entry}" is not a value and a label${fault}`, {
      hint: 'Write the value of the claim, a colon and a label, such as web-team:team=web, or * for everything.',
    });
  });
}

/** A value ends at the last colon. */
export function listedProfiles(found: Found | undefined): readonly ProfileValue[] {
  if (found === undefined) return [];
  return listed(found).map((entry) => {
    const [, value, text = ''] = /^(.+):([^:]+)$/s.exec(entry) ?? [];
    const profile = text === '*' ? undefined : profileReference.safeParse(text);
    if (value !== undefined && profile?.success !== false) return { value, profile: profile?.data };
    throw new OperatorError(`${found.from}: "${entry}" is not a value and a profile`, {
      hint: 'Write the value of the claim, a colon and a profile, such as web-team:local-ca/web, or * for any.',
    });
  });
}

/** Separated by commas, or a JSON list (in the file: a list) of values that have commas. */
export function listed(found: Found | undefined): readonly string[] {
  if (found === undefined) return [];
  if (!found.value.startsWith('[')) {
    return found.value.split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]));
  }
  try {
    const list: unknown = JSON.parse(found.value);
    if (Array.isArray(list) && list.every((one) => typeof one === 'string')) return list;
  } catch {
    // The error below says what to write.
  }
  throw new OperatorError(`${found.from}: "${found.value}" is not a list of values`, {
    hint: 'Separate values by commas, or write a JSON list such as ["CN=Admins,OU=Groups"].',
  });
}
