/** `vault certificate …`: manages certificates of the vault on this machine, without HTTP, or of one at a server. */
import { commandGroup } from '../../runtime/command.ts';
import { createCommand } from './certificate-create.ts';
import { deleteCommand, purgeCommand, undeleteCommand } from './certificate-delete.ts';
import { exportCommand } from './certificate-export.ts';
import { importCommand } from './certificate-import.ts';
import { listCommand } from './certificate-list.ts';
import { renewCommand } from './certificate-renew.ts';
import { revokeCommand } from './certificate-revoke.ts';
import { showCommand } from './certificate-show.ts';
import { updateCommand } from './certificate-update.ts';

export const certificateCommands = commandGroup(
  'certificate',
  'Create, import, list, renew and revoke certificates',
  {
    create: createCommand,
    import: importCommand,
    export: exportCommand,
    list: listCommand,
    show: showCommand,
    renew: renewCommand,
    update: updateCommand,
    revoke: revokeCommand,
    delete: deleteCommand,
    undelete: undeleteCommand,
    purge: purgeCommand,
  },
);
