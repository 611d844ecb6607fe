/**
 * Downloads and polls at several nodes. What a node answers is never older than what any node has answered before, and
 * a poll is answered with 304 only if nothing has replaced what the client has.
 */
import type { NodeAsker } from './node-asker.ts';

/** What ends: the time at which its end was requested, and that at which it was acknowledged. */
export type Ending = { endsAt: number; endedAt: number };

/** A key that clients use, also for a while after it was revoked. */
export type LentKey = Ending & { readonly name: string; readonly raw: string; readonly certificate: string };

/** The end of what has not ended. */
export const never = Number.POSITIVE_INFINITY;

/** The statuses of a request with a session or a key that is over, or not known. */
export const unauthenticated: readonly number[] = [401, 403, 429];

/** The statuses of an API key that is revoked or deleted. */
export const noKey: readonly number[] = [401, 429];

type Seen = { readonly etag: string; readonly version: number };

export class NodeDownloads {
  readonly #asker: NodeAsker;
  /** The key for all certificates. */
  readonly #all: string;
  /** The newest version of each certificate that any answer has shown. */
  readonly #newest = new Map<string, number>();
  /** By path, what was downloaded last. */
  readonly #seen = new Map<string, Seen>();

  constructor(asker: NodeAsker, all: string) {
    this.#asker = asker;
    this.#all = all;
  }

  /** Downloads it, or asks whether it has changed if it was downloaded before. Without `key`, with that for all. */
  async get(certificate: string, artifact: string, key?: LentKey): Promise<void> {
    const path = artifactPath(certificate, artifact);
    const least = this.#newest.get(certificate) ?? 0;
    const seen = this.#seen.get(path);
    const got = await this.#asker.deed(
      { kind: seen === undefined ? 'download' : 'poll', certificate, artifact },
      {
        path,
        headers: poll(key?.raw ?? this.#all, seen),
        good: seen === undefined ? [200] : [200, 304],
        refused: unauthenticated,
        // Also while the request is on its way, which takes long when the database does not answer.
        mayEndAt: () => key?.endsAt ?? never,
        as: `with ${key?.name ?? 'the key for all'}`,
      },
      ({ status, headers }) => ({
        requestId: String(headers['x-request-id']),
        version: Number(headers['certificate-version']),
        isUnchanged: status === 304,
      }),
    );
    if (got === undefined) return;
    const { what, answer, said } = got;
    const { version = 0, isUnchanged } = said;
    const { etag = '' } = answer.headers;
    const how = `${what} ${isUnchanged === true ? 'said 304 for' : 'gave'} ${version}`;
    this.#asker.expect(version >= least, `${certificate} was at ${least}, and then ${how}`);
    if (isUnchanged === true)
      this.#asker.expect(
        etag === seen?.etag && version === seen.version,
        `${how} ${etag}, but the client has ${seen?.version} ${seen?.etag}`,
      );
    this.replaced(certificate, version);
    this.#seen.set(path, { etag, version });
    const since = Math.round(got.sent - (key?.endedAt ?? never));
    // A request that was on its way during the revocation may get either answer.
    this.#asker.expect(since <= 0, `${how} to a key ${since} ms after its revocation`);
  }

  /** A node has said that the certificate has this version. */
  replaced(certificate: string, version: number): void {
    this.#newest.set(certificate, Math.max(version, this.#newest.get(certificate) ?? 0));
  }

  /** Polls at every node: this must be the status. Without `raw`, with the key for all. */
  everywhere(
    certificate: string,
    statuses: readonly number[],
    why: string,
    raw: string = this.#all,
    seen = this.seen(certificate),
  ): void {
    this.#asker.everywhere(artifactPath(certificate, polled), poll(raw, seen), statuses, why);
  }

  /** The chain that was downloaded last. */
  seen(certificate: string): Seen | undefined {
    return this.#seen.get(artifactPath(certificate, polled));
  }
}

/** What is polled at every node. */
export const polled = 'fullchain.crt';

export function bearer(raw: string): Record<string, string> {
  return { Authorization: `Bearer ${raw}` };
}

function poll(raw: string, seen: Seen | undefined): Record<string, string> {
  return { ...bearer(raw), ...(seen !== undefined && { 'If-None-Match': seen.etag }) };
}

function artifactPath(certificate: string, artifact: string): string {
  return `/api/v1/certificates/${certificate}/${artifact}`;
}
