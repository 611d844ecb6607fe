/** Who is signed in. What happens to the session in one tab happens in all of them. */
import { useEffect, useState } from 'preact/hooks';

export type Person = { readonly name: string; readonly created_at: string; readonly expires_at: string };

/** `undefined` until the vault has said who it is; `null` where nobody is. */
export type Session = Person | null | undefined;

/** Whether somebody has signed in here and not out: asking without would only fill the browser's console with a refusal. */
const hintKey = 'vault-signed-in';

const listeners = new Set<(session: Session) => void>();
const tabs = new BroadcastChannel('vault-session');
let current: Session;

tabs.onmessage = ({ data }: MessageEvent<Person | null>) => change(data);

/** Whoever is signed in from now on, here and in the other tabs. */
export function setSession(session: Person | null): void {
  change(session);
  tabs.postMessage(session);
}

/** The vault has said that the session is over. */
export function sessionLost(): void {
  if (current !== null) setSession(null);
}

/** What the vault said about this tab alone, at its beginning. */
export function learnSession(session: Person | null): void {
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

/** Whether there may be a session to ask the vault about. */
export function mayBeSignedIn(): boolean {
  try {
    return localStorage.getItem(hintKey) !== null;
  } catch {
    // Without storage nobody knows, so the vault is asked.
    return true;
  }
}

function change(session: Session): void {
  current = session;
  try {
    if (session === null) localStorage.removeItem(hintKey);
    else localStorage.setItem(hintKey, '1');
  } catch {
    // Then the vault is asked each time.
  }
  for (const listener of listeners) listener(session);
}
