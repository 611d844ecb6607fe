/**
 * What issuance from an ACME CA works with in its rooms (accounts, DNS providers, orders), from one look at a zone up
 * to a whole order.
 */
import type { AcmeClients } from './acme-accounts/acme-clients.ts';
import type {
  DatabaseContext,
  KeyringContext,
  LogContext,
  SealingContext,
  SecretsContext,
  TurnsContext,
} from './contexts.ts';
import type { OpenedDnsProviders } from './dns-providers/opened-dns-providers.ts';
import type { ChallengeRemovals } from './orders/challenge-removals.ts';

/** Asks the DNS. */
export type DnsContext = { readonly dns: OpenedDnsProviders };

/** Opens a DNS provider with its credentials. */
export type DnsProviderContext = KeyringContext & DnsContext;

/** Finds the DNS provider of a name. */
export type DnsLookupContext = DatabaseContext & LogContext & DnsContext;

/** Changes records at a DNS provider. */
export type DnsChangeContext = SealingContext & DnsContext & TurnsContext;

/** Chooses between challenges. */
export type ProofContext = DnsLookupContext & {
  /** Challenge types that are still drafts may be used. */
  readonly allowsDrafts: boolean;
};

/** Presents challenges and removes them. */
export type ChallengeContext = SecretsContext &
  LogContext &
  DnsChangeContext & { readonly removals: ChallengeRemovals };

/** Asks a CA. */
export type CaContext = DatabaseContext & { readonly acme: AcmeClients };

/** Registers an account at a CA. */
export type AccountContext = SecretsContext & LogContext & TurnsContext;

/** Orders a certificate, from the account to the download. */
export type OrderContext = AccountContext & ChallengeContext & ProofContext & CaContext;
