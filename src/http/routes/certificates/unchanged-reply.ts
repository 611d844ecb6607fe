/** The response to a conditional request of a client that has the current version; it can wait for the next one. */
import type { FileName } from '../../../domain/versions/formats.ts';
import type { WholeReply } from '../../request/reply.ts';
import type { Call, DeclaredReply } from '../../request/route.ts';

/** What downloads take in their query. */
export type VersionQuery = { version?: number | undefined; wait?: number | undefined };

/** For the API document; `what` is what the route downloads. */
export function unchangedReply(what: 'artifact' | 'file', headers: readonly string[]): DeclaredReply {
  return {
    description: `the ${what} still has the entity tag in If-None-Match; not recorded. With Retry-After if the request did not wait as long as it asked for`,
    contentType: 'none',
    headers: [...headers, 'Retry-After'],
  };
}

/** 304 with these headers, after the wait in the query. A version that the query specifies has no successor. */
export function unchanged(
  { context: { vault }, query: { version: pinned, wait = 0 } }: Call<VersionQuery>,
  { name, file, version }: { readonly name: string; readonly file: FileName; readonly version: number },
  headers: Readonly<Record<string, string>>,
): WholeReply {
  const reply = { status: 304, headers, body: '' };
  if (wait === 0 || pinned !== undefined) {
    vault.meter.unchanged(file);
    return reply;
  }
  return { ...reply, wait: { name, version, file, seconds: wait } };
}
