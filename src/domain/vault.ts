/**
 * What every operation of the vault works with. The commands build one; domain functions take it as their first
 * argument and find the world, the database, the master key and the shared memory of the process in it.
 */

import type { KeyedMutex } from '../base/keyed-mutex.ts';
import type { Log } from '../base/log.ts';
import type { Signal } from '../base/signal.ts';
import type { World } from '../base/world.ts';
import type { Keyring } from '../crypto/keyring.ts';
import type { Database } from '../db/database.ts';
import type { OutboundGuard } from '../net/outbound-guard.ts';
import type { Outbound } from '../net/outbound-http.ts';
import type { KeyUse } from './access/key-use.ts';
import type { Refusals } from './access/refusals.ts';
import type { AuditBatch } from './audit/audit-batch.ts';
import type { BackupHealth } from './backup/backup-health.ts';
import type { Changes } from './changes/changes.ts';
import type { Freshness } from './changes/freshness.ts';
import type { DiskSpace } from './health/disk-space.ts';
import type { Heartbeat } from './health/heartbeat.ts';
import type { Meter } from './health/meter.ts';
import type { AcmeClients } from './issuance/acme-clients.ts';
import type { ChallengeRemovals } from './issuance/challenge-removals.ts';
import type { OpenedDnsProviders } from './issuance/opened-dns-providers.ts';

export type Vault = {
  readonly world: World;
  readonly log: Log;
  readonly db: Database;
  readonly keyring: Keyring;
  /** Audit events of requests, committed together. */
  readonly audit: AuditBatch;
  /** Refusals on their way into the audit log, and those that are only counted. */
  readonly refusals: Refusals;
  readonly disk: DiskSpace;
  readonly freshness: Freshness;
  /** Tells whoever watches that something has changed. */
  readonly changes: Changes;
  readonly keyUse: KeyUse;
  /** Rung when a renewal was queued in this process. */
  readonly renewalQueued: Signal;
  /** Rung when a renewal has ended in this process, and the next moment of its certificate is known. */
  readonly renewalEnded: Signal;
  readonly renewalHeartbeat: Heartbeat;
  /** HTTP towards CAs and DNS providers. */
  readonly outbound: Outbound;
  /** Where connections may lead. */
  readonly guard: OutboundGuard;
  readonly acme: AcmeClients;
  readonly dns: OpenedDnsProviders;
  /** One registration per issuer and one change per DNS record at a time. */
  readonly turns: KeyedMutex;
  /** Challenges that are being removed in the background. */
  readonly removals: ChallengeRemovals;
  readonly backupHealth: BackupHealth;
  readonly meter: Meter;
  /** Challenge types that are still drafts may be used. */
  readonly allowsDrafts: boolean;
};
