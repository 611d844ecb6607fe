/** The options, path and certificate table that the commands about one deploy target share. */
import { OperatorError } from '../../../base/operator-error.ts';
import type { TargetCertificateView } from '../../../domain/deploy-targets/deploy-target-views.ts';
import { inPath } from '../../remote/remote-vault.ts';
import { printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';

export const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    positional: 'or-flag',
    description: 'the name of the target',
  },
} as const;

export const certificateOption = {
  type: 'string',
  valueHint: 'NAME',
  multiple: true,
  names: 'certificates',
} as const;

/** Prints certificates of a target as a table, or as JSON with `--json`. */
export function printCertificates(
  terminal: Terminal,
  args: { readonly json: boolean },
  certificates: readonly TargetCertificateView[],
): void {
  printList(terminal, args, certificates, {
    none: 'No certificates on this target.\n  Try: vault deploy-target update --help',
    columns: [
      { title: 'CERTIFICATE', holds: 'name' },
      { title: 'DESTINATION', holds: 'text' },
      'STATE',
      'VERSION',
      { title: 'NEXT', holds: 'time' },
      { title: 'LAST ERROR', holds: 'text' },
    ],
    row: (one) => [
      ...[one.certificate, one.destination, one.state],
      one.version === null ? '-' : String(one.version),
      ...[one.next_attempt_at ?? '-', one.error ?? '-'],
    ],
  });
}

/** The path of a target in the API. */
export function targetPath(name: string): string {
  return `/deploy-targets/${inPath(name)}`;
}

/** The error about a certificate that the target does not have. */
export function notThere(target: string, certificate: string): OperatorError {
  return new OperatorError(`${certificate} is not among the certificates of ${target}`, {
    hint: `Try: vault deploy-target show --name ${target}`,
  });
}
