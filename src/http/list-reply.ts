/** How lists are cut into pages, the same for all of them. */
import { json, type Reply } from './reply.ts';
import type { Call } from './route.ts';

/** A page of a list; `last` names its last element where more follow (RFC 8288). */
export function listReply(
  page: readonly unknown[],
  { baseUrl, path }: Pick<Call, 'baseUrl' | 'path'>,
  limit: number,
  last: string | number | undefined,
): Reply {
  if (last === undefined) return json(200, page);
  const next = `${baseUrl}${path}?${new URLSearchParams({ limit: String(limit), after: String(last) })}`;
  return json(200, page, { Link: `<${next}>; rel="next"` });
}
