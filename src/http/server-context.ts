/** What the routes work with: the vault, and the parts of it that remember things between requests. */
import type { Authenticator } from '../domain/authentication.ts';
import type { Downloads } from '../domain/downloads.ts';
import type { AdministratorIdentity } from '../domain/identity.ts';
import type { Vault } from '../domain/vault.ts';

export type ServerContext = {
  readonly vault: Vault;
  readonly authenticator: Authenticator;
  readonly downloads: Downloads;
  /** Who has the session of this token; where it is absent, nobody has one. */
  readonly findSession?: (token: string) => Promise<AdministratorIdentity | undefined>;
  /** The version of the product. */
  readonly version: string;
  /** Where clients find the vault, without a slash at the end; from the request's host where undefined. */
  readonly publicUrl: string | undefined;
};
