/** What the ACME server of a process keeps between requests. */
import type { TimedContext } from '../contexts.ts';
import { AccountKeys } from './protocol/account-keys.ts';
import { Nonces } from './protocol/nonces.ts';

export type AcmeServer = {
  readonly nonces: Nonces;
  readonly keys: AccountKeys;
  /** The page with the terms that new accounts must agree to. */
  readonly termsOfService: string | undefined;
};

export function acmeServer(vault: TimedContext, termsOfService?: string): AcmeServer {
  return { nonces: new Nonces(vault), keys: new AccountKeys(), termsOfService };
}
