/** The result of a check that a person started, next to the endpoint as it was loaded. */
import type { Endpoint } from '../data/shapes.ts';

/** If they differ, the check was about something else than the loaded endpoint. */
const checkedFields = [
  ...(['id', 'address', 'certificate', 'server_name', 'starttls', 'trust', 'interval'] as const),
  ...(['current_version'] as const),
] as const satisfies readonly (keyof Endpoint)[];

/**
 * The one that knows more. The vault stores a check without news some seconds later, and sends no live update for it,
 * so the loaded endpoint is the older one until then. An endpoint that was edited has no check until its next one.
 */
export function latestOf(loaded: Endpoint, checked: Endpoint | undefined): Endpoint {
  if (checked === undefined || loaded.checked_at === null || checked.checked_at === null) return loaded;
  if (Date.parse(checked.checked_at) <= Date.parse(loaded.checked_at)) return loaded;
  return checkedFields.every((field) => loaded[field] === checked[field]) ? checked : loaded;
}
