/** `vault ca …`: the certificates and keys of private CAs. */
import { commandGroup } from '../../runtime/command.ts';
import { caCsrCommand, importCaCommand } from './company-root.ts';
import { exportRootKeyCommand, importRootKeyCommand } from './root-key.ts';
import { rotateCaCommand, showCaCommand } from './rotate.ts';

export const caCommands = commandGroup('ca', 'Rotate private CAs and keep their keys', {
  show: showCaCommand,
  rotate: rotateCaCommand,
  csr: caCsrCommand,
  import: importCaCommand,
  'export-root-key': exportRootKeyCommand,
  'import-root-key': importRootKeyCommand,
});
