/** `vault endpoint scan`, `scans` and `remove-scan`: searches of networks for TLS servers. */
import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import type { FindingView } from '../../../domain/scans/findings.ts';
import { type CreateScanInput, createScanInput } from '../../../domain/scans/scan-inputs.ts';
import { workOnScan } from '../../../domain/scans/scanning.ts';
import {
  claimDuration,
  createScan,
  deleteScan,
  listScans,
  type ScanView,
  scanView,
} from '../../../domain/scans/scans.ts';
import type { Vault } from '../../../domain/vault.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { endpointOptions } from '../../settings/endpoint-settings.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { refuseOwnRules } from './endpoint-choice.ts';
import { findingsHere, noneMissing, printFindings } from './endpoint-found.ts';

/** `vault endpoint scan`. */
export const scan = command({
  name: 'endpoint scan',
  description: 'Search networks for TLS servers',
  examples: [
    { does: 'Find certificates that the vault does not have', line: 'vault endpoint scan 10.0.0.0/24' },
    { does: 'Scan other ports', line: 'vault endpoint scan 10.0.0.0/24 --port 443,8443,636' },
    { does: 'Repeat it every week', line: 'vault endpoint scan 10.0.0.0/16 --every 7d' },
  ],
  options: {
    network: {
      type: 'string',
      valueHint: 'NETWORK',
      required: true,
      multiple: true,
      positional: 'or-flag',
      description: 'an address, or a network such as 10.0.0.0/24',
    },
    port: {
      type: 'string',
      valueHint: 'PORT,...',
      description: 'ports, with STARTTLS on those of mail, LDAP, FTP and databases (default: 443)',
    },
    rate: { type: 'string', valueHint: 'N', description: 'connections per second, up to 200 (default: 50)' },
    every: {
      type: 'string',
      valueHint: 'INTERVAL',
      description: 'repeat it, such as every 7d; "vault serve" does it (default: once, now)',
    },
    'endpoint-allow': endpointOptions['endpoint-allow'],
    'endpoint-forbid': endpointOptions['endpoint-forbid'],
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const { network: networks, port, rate, every } = args;
    const body = {
      networks,
      ...(port !== undefined && { ports: port.split(',').map(numberFrom) }),
      ...(rate !== undefined && { rate: numberFrom(rate) }),
      ...(every !== undefined && { interval: every }),
    };
    if (every !== undefined) refuseOwnRules(args, '--every', '"vault serve" has its own settings.');
    const input = parseInput(createScanInput, body);
    const found = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => scanHere(vault, terminal, input),
      (remote) => {
        refuseOwnRules(args, '--server', 'The server has its own settings.');
        return scanThere(remote, terminal, body);
      },
    );
    if (found === undefined) return;
    printFindings(terminal, args, found, noneMissing);
  },
});

/** A number, or what the API refuses with its own words. */
function numberFrom(text: string): number | string {
  return /^ *\d{1,9} *$/.test(text) ? Number(text) : text;
}

async function scanHere(
  vault: Vault,
  terminal: Terminal,
  input: CreateScanInput,
): Promise<FindingView[] | undefined> {
  if (input.interval !== undefined) {
    announce(terminal, await createScan(vault, localCli, input));
    return undefined;
  }
  const stop = stopSignal();
  const held = vault.world.now() + claimDuration;
  const id = await createScan(vault, localCli, input, held);
  const show = progressOn(terminal);
  await workOnScan(vault, id, stop, { held, onProgress: (row) => show(scanView(row)) });
  if (stop.aborted) {
    sayStopped(terminal, id);
    return undefined;
  }
  return findingsHere(vault, { scan: id, known: false });
}

async function scanThere(
  remote: RemoteVault,
  terminal: Terminal,
  body: object,
): Promise<FindingView[] | undefined> {
  let view = await remote.send<ScanView>('POST', '/endpoint-scans', body);
  if (view.interval !== null) {
    announce(terminal, view.id);
    return undefined;
  }
  const stop = stopSignal();
  const show = progressOn(terminal);
  while (view.finished_at === null) {
    await terminal.world.sleep(pollEvery, stop);
    if (stop.aborted) {
      sayStopped(terminal, view.id);
      return undefined;
    }
    view = await remote.get<ScanView>(`/endpoint-scans/${view.id}`);
    show(view);
  }
  return remote.list<FindingView>('/endpoint-findings', { scan: String(view.id), known: 'false' });
}

const pollEvery = 2000;

function announce({ stderr }: Terminal, id: number): void {
  stderr.write(`Added scan ${id}; "vault serve" runs it.\n  Try: vault endpoint scans\n`);
}

function sayStopped({ stderr }: Terminal, id: number): void {
  stderr.write(
    `Stopped; "vault serve" continues scan ${id} unless you delete it.\n  Try: vault endpoint remove-scan ${id}\n`,
  );
}

/** Shows how far a scan is, on a terminal only. */
function progressOn({ stderr }: Terminal): (view: ScanView) => void {
  if (!stderr.isTTY) return () => undefined;
  return ({ done, total, found }) => {
    const end = done === total ? '\n' : '';
    stderr.write(`\r${Math.floor((100 * done) / total)} % of ${total}, ${found} found${end}`);
  };
}

/** `vault endpoint scans`. */
export const scans = command({
  name: 'endpoint scans',
  description: 'List the scans of networks',
  examples: [{ does: 'Show the progress of all scans', line: 'vault endpoint scans' }],
  options: { ...jsonOption },
  run: async (args, terminal) => {
    const all = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => listScans(vault),
      (remote) => remote.get<ScanView[]>('/endpoint-scans'),
    );
    printList(terminal, args, all, {
      none: 'No scans yet.\n  Try: vault endpoint scan --help',
      columns: [
        'ID',
        { title: 'NETWORKS', holds: 'list' },
        { title: 'PORTS', holds: 'list' },
        'EVERY',
        'STATE',
        'DONE',
        'FOUND',
        { title: 'FINISHED', holds: 'time' },
      ],
      row: ({ id, networks, ports, interval, state, done, total, found, finished_at }) => [
        ...[String(id), networks, ports.map(String), interval ?? '-', state],
        ...[`${Math.floor((100 * done) / total)} %`, String(found), finished_at ?? '-'],
      ],
    });
  },
});

/** `vault endpoint remove-scan`. */
export const removeScan = command({
  name: 'endpoint remove-scan',
  description: 'Delete a scan and its results',
  examples: [{ does: 'Delete scan 3', line: 'vault endpoint remove-scan 3' }],
  options: {
    id: {
      type: 'string',
      valueHint: 'ID',
      required: true,
      positional: 'or-flag',
      description: 'the number of the scan',
    },
  },
  run: async (args, terminal) => {
    const id = numberFrom(args.id);
    if (typeof id === 'string') {
      throw new Misuse(`"${args.id}" is not the number of a scan`, 'Try: vault endpoint scans');
    }
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => deleteScan(vault, localCli, id),
      async (remote) => {
        await remote.send('DELETE', `/endpoint-scans/${id}`);
      },
    );
    terminal.stderr.write(`Removed scan ${id}.\n`);
  },
});
