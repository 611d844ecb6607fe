/** How far a replacement is: printed, and followed to its end. */
import { second } from '../../../base/duration.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import type {
  ReplacedCertificateView,
  ReplacementView,
} from '../../../domain/replacements/replacement-views.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import { progress } from '../../terminal/progress.ts';
import { printTable } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import type { ReplacementPlace } from './replacement-places.ts';

/** Each poll at a server is a request. */
const pollInterval = 2 * second;

/** How the certificates were selected, in words. */
export function selectionText({
  issuer,
  labels,
  certificate,
}: Pick<ReplacementView, 'issuer' | 'labels' | 'certificate'>): string {
  if (certificate !== null) return `certificate ${certificate}`;
  return issuer === null ? `labels ${labels.join(' ')}` : `issuer ${issuer}`;
}

/** `3 revoked, 1 failed`. */
export function countsText({ certificates }: Pick<ReplacementView, 'certificates'>): string {
  const counts = Object.entries(certificates).filter(([, count]) => count > 0);
  return counts.map(([state, count]) => `${count} ${state}`).join(', ');
}

/** Prints a replacement with its certificates. */
export function printReplacement(
  terminal: Pick<Terminal, 'stdout'>,
  { json }: { readonly json: boolean },
  view: ReplacementView,
  certificates: readonly ReplacedCertificateView[],
): void {
  if (json) {
    terminal.stdout.write(jsonText({ ...view, certificates }));
    return;
  }
  const { id, state, reason, deadline_at, canceled_by } = view;
  terminal.stdout.write(
    facts([
      ['id', String(id)],
      ['state', canceled_by === null ? state : `canceled by ${canceled_by}`],
      ['selected', selectionText(view)],
      ['reason', reason],
      ['created', `${view.created_at} by ${view.created_by}`],
      ['deadline', deadline_at],
      ['certificates', countsText(view)],
    ]),
  );
  terminal.stdout.write('\n');
  printTable(
    terminal,
    [
      { title: 'CERTIFICATE', holds: 'name' },
      'STATE',
      'OLD',
      'NEW',
      'LIVE',
      { title: 'ERROR', holds: 'text' },
    ],
    certificates.map((row) => [
      ...[row.certificate, row.state, String(row.old_version), String(row.new_version ?? '-')],
      ...[row.places === 0 ? '-' : `${row.live} of ${row.places}`, row.error ?? '-'],
    ]),
  );
}

/**
 * Shows the progress until the replacement ends, or until nothing is left but what has failed. Throws OperatorError if
 * no server carries it out, and for a stop signal.
 */
export async function followReplacement(
  place: ReplacementPlace,
  terminal: Terminal,
  id: number,
): Promise<void> {
  const stop = stopSignal();
  const steps = progress(terminal.stderr);
  try {
    for (;;) {
      const view = await place.view(id);
      const { waiting, renewing, issued, live } = view.certificates;
      const isMoving = view.state === 'running' && waiting + renewing + issued + live > 0;
      if (!isMoving) return;
      if (stop.aborted) throw goesOn(id);
      if (!(await place.isServed())) {
        throw new OperatorError('"vault serve" is not running; it is required to carry out the replacement', {
          hint: `Start it, then run "vault replace status --id ${id} --wait".`,
        });
      }
      steps.show(`${countsText(view)}; deadline ${view.deadline_at}`);
      await terminal.world.sleep(pollInterval, stop);
    }
  } finally {
    steps.end();
  }
}

function goesOn(id: number): OperatorError {
  return new OperatorError(`replacement ${id} continues without this command`, {
    hint: `Follow it with "vault replace status --id ${id} --wait".`,
  });
}

/** Throws OperatorError, which gives scripts the exit code 1, unless every old version is revoked. */
export function requireAllRevoked(view: ReplacementView): void {
  const total = Object.values(view.certificates).reduce((sum, count) => sum + count, 0);
  const { revoked } = view.certificates;
  if (revoked === total) return;
  throw new OperatorError(`replacement ${view.id} is incomplete: ${countsText(view)}`);
}
