/**
 * The context of all operations. Commands build it; domain functions take it, or a part of it, as their first argument.
 * It has the world, the database, the master key and the caches of the process.
 */

import type { KeyedMutex } from '../base/keyed-mutex.ts';
import type { Log } from '../base/log.ts';
import type { Signal } from '../base/signal.ts';
import type { World } from '../base/world.ts';
import type { Keyring } from '../crypto/secrets/keyring.ts';
import type { Database } from '../db/database.ts';
import type { IpNetwork } from '../net/ip-network.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';
import type { KeyUse } from './access/key-use.ts';
import type { Refusals } from './access/refusals.ts';
import type { AcmeClients } from './acme-accounts/acme-clients.ts';
import type { ValidationParts } from './acme-server/validation/validation-context.ts';
import type { Validations } from './acme-server/validation/validations.ts';
import type { AuditBatch } from './audit/audit-batch.ts';
import type { BackupHealth } from './backup/backup-health.ts';
import type { Changes } from './cache/change-feed.ts';
import type { Freshness } from './cache/freshness.ts';
import type { OpenedDnsProviders } from './dns-providers/opened-dns-providers.ts';
import type { FailedChecks } from './doctor/readiness.ts';
import type { DiskSpace } from './health/disk-space.ts';
import type { Heartbeat } from './health/heartbeat.ts';
import type { Meter } from './health/meter.ts';
import type { DatabaseClock } from './nodes/database-clock.ts';
import type { LeaseOwners } from './nodes/lease-owners.ts';
import type { ChallengeRemovals } from './orders/challenge-removals.ts';

export type Vault = {
  readonly world: World;
  readonly log: Log;
  /** The clock of the database where several nodes share it; `world` then has its time. */
  readonly sharedClock: DatabaseClock | undefined;
  readonly db: Database;
  readonly keyring: Keyring;
  /** Collects audit events of requests and commits them together. */
  readonly audit: AuditBatch;
  /** Records refusals in the audit log, or counts them. */
  readonly refusals: Refusals;
  readonly disk: DiskSpace;
  readonly freshness: Freshness;
  /** Notifies watchers of changes. */
  readonly changes: Changes;
  readonly keyUse: KeyUse;
  /** Names the owners of leases, and tells whose process has died. */
  readonly owners: LeaseOwners;
  /** Notified when this process queued a renewal. */
  readonly renewalQueued: Signal;
  /** Notified when a renewal of this process has ended and the next one is scheduled. */
  readonly renewalEnded: Signal;
  readonly renewalHeartbeat: Heartbeat;
  readonly failedChecks: FailedChecks;
  /** HTTP client for CAs and DNS providers. */
  readonly outbound: Outbound;
  /** The addresses that outbound connections may use. */
  readonly guard: OutboundGuard;
  /** The addresses that checks of endpoints may connect to. */
  readonly endpointGuard: OutboundGuard;
  /** Networks that scans may search, besides private ones. */
  readonly scannable: readonly IpNetwork[];
  /** How the vault validates challenges of ACME clients. */
  readonly validation: ValidationParts;
  /** Validations running in the background. */
  readonly validations: Validations;
  readonly acme: AcmeClients;
  readonly dns: OpenedDnsProviders;
  /** Serializes account registrations per issuer and changes per DNS record. */
  readonly turns: KeyedMutex;
  /** Challenge removals running in the background. */
  readonly removals: ChallengeRemovals;
  readonly backupHealth: BackupHealth;
  readonly meter: Meter;
  /** Whether draft challenge types may be used. */
  readonly allowsDrafts: boolean;
};
