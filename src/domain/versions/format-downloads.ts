/**
 * Downloads of a version in other formats, recorded like those of artifacts. Making a keystore costs processor time, so
 * only a few are made at a time.
 */
import type { CertName } from '../../base/cert-name.ts';
import { KeyedMutex } from '../../base/keyed-mutex.ts';
import { Problem } from '../../base/problem.ts';
import type { Actor } from '../audit/audit.ts';
import type { DatabaseContext, SealingContext } from '../contexts.ts';
import type { Downloads } from './downloads.ts';
import { type FormatName, formatBody, formats, formatTag, type Keystore } from './formats.ts';
import { holdsKey } from './versions.ts';

/** A version in a format, ready for download. Nothing has been unsealed or recorded yet. */
export type FormattedVersion = {
  readonly name: CertName;
  readonly file: FormatName;
  readonly version: number;
  readonly etag: string;
  readonly isSecret: boolean;
  /** The bytes; unseals the private key if they contain it. */
  readonly make: () => Promise<Buffer>;
};

type FormatContext = DatabaseContext & SealingContext;

/** At a time and in each process; the thread pool has four threads, which other work needs too. */
const maxAtOnce = 2;

/** A fleet that downloads in the same second waits; more requests than this are refused. */
const maxWaiting = 1000;

export class FormatDownloads {
  readonly #vault: FormatContext;
  readonly #downloads: Downloads;
  readonly #turns = new KeyedMutex();
  #inHand = 0;

  constructor(vault: FormatContext, downloads: Downloads) {
    this.#vault = vault;
    this.#downloads = downloads;
  }

  /**
   * The current version, or version `number`, in a format. Throws `certificate_not_found`, `version_not_found`,
   * `no_current_version`, `private_key_not_held` for a file that needs a private key which the client holds, and
   * `invalid_request` if `keystore.p12` has no password; `make` throws `rate_limited`.
   */
  async find(
    text: string,
    file: FormatName,
    number: number | undefined,
    keystore: Keystore | undefined,
  ): Promise<FormattedVersion> {
    const { scope, keystore: use, needsKey } = formats[file];
    const { name, row } = await this.#downloads.version(text, number);
    if (needsKey && !holdsKey(row)) throw new Problem('private_key_not_held');
    if (use === 'required' && keystore === undefined) {
      throw new Problem('invalid_request', {
        detail: `${file} needs a password.`,
        hint: 'Send it in the request header Keystore-Password.',
      });
    }
    const request = { name, file, row, keystore: use === 'none' || !holdsKey(row) ? undefined : keystore };
    const make = () => formatBody(this.#vault, request);
    return {
      name,
      file,
      version: row.version,
      etag: formatTag(this.#vault, request),
      isSecret: scope === 'private_keys:read',
      make: request.keystore === undefined ? make : () => this.#inTurn(make),
    };
  }

  /** The bytes, after their audit event is durable. Throws like `make`, or if the event cannot be recorded. */
  async handOut(formatted: FormattedVersion, actor: Actor): Promise<Buffer> {
    const body = await formatted.make();
    await this.#downloads.record(formatted, actor);
    return body;
  }

  async #inTurn(make: () => Promise<Buffer>): Promise<Buffer> {
    if (this.#inHand >= maxAtOnce + maxWaiting) {
      throw new Problem('rate_limited', {
        detail: 'Too many keystores are being made; retry in a moment.',
        retryAfter: 5,
      });
    }
    this.#inHand += 1;
    try {
      return await this.#turns.take('keystore', make, { atOnce: maxAtOnce });
    } finally {
      this.#inHand -= 1;
    }
  }
}
