/**
 * What `vault doctor` says about the server of a shared database: whether it keeps what it confirms, and for how many
 * nodes.
 */
import { second } from '../../base/duration.ts';
import { isLoopbackHost } from '../../base/secure-url.ts';
import type { ServerFacts } from '../../db/engine.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

/** Leases and limits bear this much; certificates and tokens of others do not bear much more. */
const maxDifference = 30 * second;

/** None for a database in a file. Rejects with StorageError. */
export async function databaseFindings({ db }: DatabaseContext): Promise<Finding[]> {
  const facts = await db.serverFacts();
  return facts === undefined ? [] : findingsAbout(facts);
}

/** The findings about a server. */
export function findingsAbout(facts: ServerFacts): Finding[] {
  const check = 'database';
  const { version, place, isEncrypted, isSocket, isPooled, standbys } = facts;
  const link = isSocket ? 'unix socket' : isEncrypted ? 'TLS' : 'no TLS';
  const message = [
    `PostgreSQL ${version}`,
    link,
    ...(isPooled ? ['pooler'] : []),
    standbysText(standbys.length),
  ].join(', ');
  return [
    { check, status: 'ok', message: `${message} (${place})` },
    ...lossFindings(facts),
    ...openFindings(facts),
  ];
}

/** What could be lost although it was confirmed. */
function lossFindings({
  fsync,
  fullPageWrites,
  standbys,
  synchronousStandbyNames,
  place,
}: ServerFacts): Finding[] {
  const check = 'database';
  const found: Finding[] = [];
  if (!(fsync && fullPageWrites)) {
    found.push({
      check,
      status: 'failed',
      message: `the server does not survive a power failure: ${fsync ? 'full_page_writes' : 'fsync'} is off (${place})`,
      hint: 'Turn it on in postgresql.conf, and reload the server.',
    });
  }
  if (standbys.length > 0 && synchronousStandbyNames === '') {
    found.push({
      check,
      status: 'warning',
      message: 'replication is asynchronous: a failover can lose what the vault has confirmed',
      hint: 'Set synchronous_standby_names (with Patroni: synchronous_mode). Without it, a revocation could be undone.',
    });
  }
  return found;
}

/** Who else could read or change something on the way, and what the time is there. */
function openFindings(facts: ServerFacts): Finding[] {
  const check = 'database';
  const found: Finding[] = [];
  const warn = (message: string, hint: string) => found.push({ check, status: 'warning', message, hint });
  if (!(facts.isEncrypted || facts.isSocket || isLoopbackPlace(facts.place))) {
    warn(
      'the connection to the server is not encrypted',
      'Private keys are sealed, but sessions and rights could be changed on the way. Use sslmode=verify-full.',
    );
  }
  if (facts.isSchemaOpen) {
    warn(
      'every role of the database may create tables and functions in the schema of the vault',
      'Fix, as its owner: revoke create on schema public from public',
    );
  }
  const { server, before, after } = facts.clock;
  const ahead = server > after ? server - after : Math.min(0, server - before);
  if (Math.abs(ahead) > maxDifference) {
    warn(
      `the clock of this machine is ${Math.round(Math.abs(ahead) / second)} s ${ahead > 0 ? 'behind' : 'ahead of'} that of the server`,
      'The vault goes by the clock of the server. Check the time service of both machines.',
    );
  }
  return found;
}

/** `host:port` of this machine. */
function isLoopbackPlace(place: string): boolean {
  return isLoopbackHost(place.replace(/:\d+$/, ''));
}

function standbysText(standbys: number): string {
  if (standbys === 0) return 'no standby';
  return standbys === 1 ? 'one standby' : `${standbys} standbys`;
}
