/**
 * Records the requests to a vault and their responses in order, and derives the possible states of the vault. A
 * response narrows the possible states; a request without a response widens them.
 */

/** A request. Names are never reused, so that each response is about one object. */
export type Deed =
  | { readonly kind: 'download' | 'poll'; readonly certificate: string; readonly artifact: string }
  | { readonly kind: 'create key'; readonly name: string; readonly certificate: string }
  | { readonly kind: 'revoke key' | 'delete key'; readonly name: string }
  | { readonly kind: 'import'; readonly certificate: string; readonly fingerprint: string }
  | { readonly kind: 'create certificate' | 'delete certificate'; readonly certificate: string }
  | { readonly kind: 'renew'; readonly certificate: string }
  | { readonly kind: 'sign in' | 'sign out'; readonly session: string }
  | { readonly kind: 'checkpoint' };

/** What the users of one server do; those of several nodes have a list of their own. */
export const deedKinds = [
  ...['download', 'create key', 'revoke key', 'delete key', 'import', 'create certificate'],
  ...['delete certificate', 'renew', 'sign in', 'sign out', 'checkpoint'],
] as readonly Deed['kind'][];

/** The result; its members depend on the deed. */
export type Said = {
  /** Of a poll that was answered with 304. */
  readonly isUnchanged?: boolean;
  readonly requestId?: string;
  readonly version?: number;
  readonly raw?: string;
  readonly renewal?: number;
  readonly cookie?: string;
  readonly checkpoint?: string;
};

/** `refused` means that nothing was changed. */
export type Outcome =
  | { readonly is: 'done'; readonly said: Said }
  | { readonly is: 'refused' }
  | { readonly is: 'unknown' };

export type Entry =
  | { readonly deed: number; readonly begun: Deed }
  | { readonly deed: number; readonly ended: Outcome };

export class Ledger {
  readonly entries: Entry[] = [];
  readonly #told: (entry: number) => void;
  #deeds = 0;

  /** `told` is called with the number of each entry, in order, at the time of the request or response. */
  constructor(
    told: (entry: number) => void = () => {
      // By default, no listener.
    },
  ) {
    this.#told = told;
  }

  begin(begun: Deed): number {
    const deed = this.#deeds++;
    this.#told(this.entries.push({ deed, begun }) - 1);
    return deed;
  }

  end(deed: number, ended: Outcome): void {
    this.#told(this.entries.push({ deed, ended }) - 1);
  }
}

export type KeyState = 'absent' | 'active' | 'revoked';
export type Presence = 'absent' | 'present';

export type Download = {
  readonly requestId: string;
  readonly certificate: string;
  readonly artifact: string;
  readonly version: number;
};

/** An object and its possible states. */
type May<S, More = unknown> = { may: ReadonlySet<S> } & More;

/** The possible states after the applied entries. */
export class Facts {
  /** Downloads with status 200. */
  readonly downloads: Download[] = [];
  /** The ids of requests that were answered with 304. */
  readonly unchanged: string[] = [];
  readonly keys = new Map<string, May<KeyState, { certificate: string; raw?: string }>>();
  /** By fingerprint. */
  readonly imports = new Map<string, May<Presence, { certificate: string }>>();
  readonly certificates = new Map<string, May<Presence>>();
  /** By id. */
  readonly renewals = new Map<number, { certificate: string }>();
  readonly sessions = new Map<string, May<Presence, { cookie?: string }>>();
  /** Checkpoints of the audit log, in the order in which they were printed. */
  readonly checkpoints: string[] = [];
  /** The number of responses by kind. */
  readonly answers = new Map<Deed['kind'], number>();
  readonly #open = new Map<number, { deed: Deed; undo: () => void }>();

  apply(entry: Entry): void {
    if ('begun' in entry) {
      this.#open.set(entry.deed, { deed: entry.begun, undo: this.#widen(entry.begun) });
      return;
    }
    const open = this.#open.get(entry.deed);
    if (open === undefined) throw new Error(`deed ${entry.deed} ended without a start`);
    this.#open.delete(entry.deed);
    if (entry.ended.is === 'refused') open.undo();
    if (entry.ended.is !== 'done') return;
    this.answers.set(open.deed.kind, (this.answers.get(open.deed.kind) ?? 0) + 1);
    this.#narrow(open.deed, entry.ended.said);
  }

  /** The number of responses. */
  get answered(): number {
    return this.answers.values().reduce((sum, count) => sum + count, 0);
  }

  #widen(deed: Deed): () => void {
    switch (deed.kind) {
      case 'create key':
        return widened(this.keys, deed.name, 'active', { certificate: deed.certificate });
      case 'revoke key':
        return widened(this.keys, deed.name, 'revoked');
      case 'delete key':
        return widened(this.keys, deed.name, 'absent');
      case 'import':
        return widened(this.imports, deed.fingerprint, 'present', { certificate: deed.certificate });
      case 'create certificate':
        return widened(this.certificates, deed.certificate, 'present', {});
      case 'delete certificate':
        return widened(this.certificates, deed.certificate, 'absent');
      case 'sign in':
        return widened(this.sessions, deed.session, 'present', {});
      case 'sign out':
        return widened(this.sessions, deed.session, 'absent');
      default:
        return () => {
          // Leaves no object with uncertain existence.
        };
    }
  }

  #narrow(deed: Deed, said: Said): void {
    const { requestId = '', version = 0, raw = '', renewal, cookie = '', checkpoint = '' } = said;
    switch (deed.kind) {
      case 'download':
      case 'poll':
        if (said.isUnchanged === true) this.unchanged.push(requestId);
        else
          this.downloads.push({ requestId, version, certificate: deed.certificate, artifact: deed.artifact });
        break;
      case 'create key':
        this.keys.set(deed.name, { may: new Set(['active']), certificate: deed.certificate, raw });
        break;
      case 'revoke key':
        narrow(this.keys, deed.name, 'revoked');
        break;
      case 'delete key':
        narrow(this.keys, deed.name, 'absent');
        break;
      case 'import':
        narrow(this.imports, deed.fingerprint, 'present');
        break;
      case 'create certificate':
        narrow(this.certificates, deed.certificate, 'present');
        break;
      case 'delete certificate':
        narrow(this.certificates, deed.certificate, 'absent');
        break;
      case 'renew':
        if (renewal !== undefined) this.renewals.set(renewal, { certificate: deed.certificate });
        break;
      case 'sign in':
        this.sessions.set(deed.session, { may: new Set(['present']), cookie });
        break;
      case 'sign out':
        narrow(this.sessions, deed.session, 'absent');
        break;
      case 'checkpoint':
        this.checkpoints.push(checkpoint);
        break;
    }
  }
}

/** Adds a possible state; a new object starts as `absent`. Returns a function that undoes it. */
function widened<S, M extends object>(
  things: Map<string, May<S, M>>,
  name: string,
  state: S,
  fresh?: M,
): () => void {
  const thing = things.get(name) ?? { may: new Set(['absent' as S]), ...(fresh as M) };
  const before = thing.may;
  things.set(name, Object.assign(thing, { may: new Set([...before, state]) }));
  return () => {
    thing.may = before;
  };
}

function narrow<S>(things: Map<string, May<S>>, name: string, state: S): void {
  const thing = things.get(name);
  if (thing === undefined) throw new Error(`${name} was never requested`);
  thing.may = new Set([state]);
}
