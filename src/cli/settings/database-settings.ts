/** The settings of a database on a server, for a vault that several machines serve. */
import { OperatorError } from '../../base/operator-error.ts';
import { isServerUrl } from '../../domain/instance/vault-database.ts';
import type { Environment } from '../terminal/terminal.ts';
import type { Found } from './setting-values.ts';

export const databaseOptions = {
  database: {
    type: 'string',
    valueHint: 'URL',
    description: 'a database on a PostgreSQL server instead of one in the data directory',
  },
  'database-connections': {
    type: 'string',
    valueHint: 'N',
    description: 'how many connections to the server read at the same time; three more write (default: 8)',
  },
} as const;

export type DatabaseSettings = {
  /** Undefined for the embedded database in the data directory. */
  readonly database: string | undefined;
  readonly databaseConnections: number;
  /** What libpq reads, too: PGPASSWORD and its kind, and the directory with .pgpass. */
  readonly databaseSurroundings: { readonly environment: Environment; readonly home: string | undefined };
};

const defaultConnections = 8;
const maxConnections = 200;

/** Throws OperatorError that names the invalid setting. */
export function databaseSettings(
  setting: (name: keyof typeof databaseOptions) => Found | undefined,
  environment: Environment,
): DatabaseSettings {
  const url = setting('database');
  if (url !== undefined && !isServerUrl(url.value)) {
    throw new OperatorError(`${url.from} is not the URL of a PostgreSQL database`, {
      hint: 'It looks like postgres://vault@db.example.com/vault. Without one, the database is in the data directory.',
    });
  }
  if (url !== undefined) refuseVisiblePassword(url);
  const own = Object.entries(environment).filter(([name]) => name.startsWith('PG'));
  return {
    database: url?.value,
    databaseConnections: connections(setting('database-connections')),
    databaseSurroundings: { environment: Object.fromEntries(own), home: environment.HOME },
  };
}

/** Throws OperatorError if a flag has a password: other users of the machine see the command line. */
export function refuseVisiblePassword({ value, from }: Found): void {
  if (!from.startsWith('--')) return;
  const [place = '', query = ''] = value.split('?', 2);
  const credentials = place.slice(place.indexOf('//') + 2, Math.max(0, place.lastIndexOf('@')));
  const isHidden = !credentials.includes(':') && !/(^|&)(ssl)?password=/.test(query);
  if (isHidden) return;
  throw new OperatorError(`${from} contains a password, which every user of this machine can see`, {
    hint: 'Leave it out, and pass it with PGPASSWORD or a password file (PGPASSFILE). CERTVAULT_DATABASE may contain it, too.',
  });
}

function connections(found: Found | undefined): number {
  if (found === undefined) return defaultConnections;
  const count = /^\d{1,4}$/.test(found.value) ? Number(found.value) : 0;
  if (count >= 1 && count <= maxConnections) return count;
  throw new OperatorError(`${found.from}: "${found.value}" is not a number from 1 to ${maxConnections}`, {
    hint: 'Each node opens that many connections, and three more. The server must allow them all (max_connections).',
  });
}
