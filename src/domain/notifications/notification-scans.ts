/** Notifies of servers that a regular scan sees for the first time, with certificates that the vault does not have. */
import { parseJson } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import { type ListedScanRow, newFindings } from '../../db/tables/scans.ts';
import type { WorldContext } from '../contexts.ts';
import { addressText } from '../endpoints/endpoint-inputs.ts';
import { notify } from './notification-queue.ts';
import { type Data, fact, section, type Words } from './notification-set-aside.ts';

/** Servers that a notice lists. */
const maxListed = 100;

/** The data of a notice. */
type Found = {
  readonly scan: number;
  /** In CIDR notation. */
  readonly networks: readonly string[];
  /** How many there are, up to 10,000. */
  readonly count: number;
  /** The first of them. */
  readonly servers: readonly {
    /** `address:port` */
    readonly address: string;
    readonly names: readonly string[];
    readonly issuer: string;
    readonly fingerprint_sha256: string;
    /** RFC 3339. */
    readonly not_after: string;
  }[];
};

const maxCounted = 10_000;

/** Queues a notice of what the run found that ends now, unless everything was known. */
export async function notifyFound(
  { world }: WorldContext,
  writer: Writer,
  { id, networks, started_at }: Pick<ListedScanRow, 'id' | 'networks' | 'started_at'>,
): Promise<void> {
  const rows = await newFindings(writer, { scanId: id, since: started_at ?? 0, limit: maxCounted });
  if (rows.length === 0) return;
  const data: Found = {
    ...{ scan: id, networks: parseJson(networks), count: rows.length },
    servers: rows.slice(0, maxListed).map((row) => ({
      address: addressText(row),
      ...{ names: parseJson(row.names), issuer: row.issuer, fingerprint_sha256: row.fingerprint_sha256 },
      not_after: formatTimestamp(row.not_after),
    })),
  };
  await notify(world, writer, { event: 'scan.found', about: `scan ${id}`, certificates: null, data });
}

/** The text about what a scan found. */
export function foundWords(data: Data): Words {
  const { scan, networks, count, servers } = data as unknown as Found;
  const [first] = servers;
  const what = count === 1 ? 'a server with a certificate' : `${count} servers with certificates`;
  return {
    subject:
      count === 1 && first !== undefined
        ? `scan ${scan} found ${first.address} with a certificate of ${first.issuer}`
        : `scan ${scan} found ${what} that the vault does not have`,
    lines: [
      `Scan ${scan} found ${what} that the vault does not have.`,
      '',
      ...fact('Networks', networks.join(', ')),
      ...section(
        'Not seen before',
        servers.map(
          ({ address, names, issuer, not_after }) =>
            `${address}: ${names.join(', ') || 'no names'}, valid until ${not_after}, from ${issuer}`,
        ),
        count,
      ),
      ...['', 'Watch each, import its certificate, or issue one here:', ''],
      ...['  vault endpoint found', '  vault endpoint adopt --help'],
    ],
  };
}
