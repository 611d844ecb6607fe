/** The session of the signed-in person, shared between all tabs. */
import { useEffect, useState } from 'preact/hooks';
import { includesRole, type Role } from '../../../src/base/role.ts';
import type { Scope } from '../../../src/base/scope.ts';

export type Person = {
  readonly name: string;
  readonly role: Role;
  readonly scopes: readonly Scope[];
  /** Labels that confine what they may do; empty for everything. */
  readonly reach: readonly string[];
  /** Profiles (`issuer/profile`) that they may have certificates issued with; empty for any. */
  readonly profiles: readonly string[];
  /** Whether destructive changes need the approval of a second administrator. */
  readonly second_approval: boolean;
  readonly sign_in: 'password' | 'oidc';
  /** Whether they must set up a second factor before anything else. */
  readonly second_factor_needed: boolean;
  readonly created_at: string;
  readonly expires_at: string;
};

/** `undefined` until it is known; `null` if no one is signed in. */
export type Session = Person | null | undefined;

/**
 * Set while someone is signed in here. Without it the console does not ask for the session, which would log a 401 in
 * the browser.
 */
const hintKey = 'vault-signed-in';

const listeners = new Set<(session: Session) => void>();
const tabs = new BroadcastChannel('vault-session');
let current: Session;

tabs.onmessage = ({ data }: MessageEvent<Person | null>) => change(data);

/** Sets the session in this tab and all others. */
export function setSession(session: Person | null): void {
  change(session);
  tabs.postMessage(session);
}

/** Called when the vault reports that the session has ended. */
export function sessionLost(): void {
  if (current !== null) setSession(null);
}

/** Sets the session in this tab only, when it loads. */
export function setTabSession(session: Person | null): void {
  change(session);
}

export function useSession(): Session {
  const [session, set] = useState(current);
  useEffect(() => {
    listeners.add(set);
    set(current);
    return () => {
      listeners.delete(set);
    };
  }, []);
  return session;
}

/** What an action needs: a role, the right to read private keys, or a reach that no label confines. */
export type Need = Role | 'private_keys:read' | 'whole-vault';

/** Why the signed-in person may not do what needs this; undefined if they may. */
export function useRefusal(needs: Need | undefined): string | undefined {
  const person = useSession();
  if (needs === undefined || !person) return undefined;
  if (needs === 'whole-vault') {
    if (person.reach.length === 0) return undefined;
    return `Concerns the whole vault; your reach is ${person.reach.join(', ')}.`;
  }
  const role = needs === 'private_keys:read' ? 'admin' : needs;
  if (!includesRole(person.role, role)) return `Requires the role ${role}; yours is ${person.role}.`;
  if (needs !== 'private_keys:read' || person.scopes.includes(needs)) return undefined;
  return 'The settings of this vault hide private keys from the console.';
}

/** Whether a session may exist. */
export function mayBeSignedIn(): boolean {
  try {
    return localStorage.getItem(hintKey) !== null;
  } catch {
    // Without storage it is unknown, so the vault decides.
    return true;
  }
}

function change(session: Session): void {
  current = session;
  try {
    if (session === null) localStorage.removeItem(hintKey);
    else localStorage.setItem(hintKey, '1');
  } catch {
    // Without storage, each load asks the vault.
  }
  for (const listener of listeners) listener(session);
}
