/** `vault replace …`: reissues certificates in an emergency, and revokes their old versions afterwards. */
import { command, commandGroup } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { start } from './replace-start.ts';
import { replacementsHere, replacementsThere } from './replacement-places.ts';
import {
  countsText,
  followReplacement,
  printReplacement,
  requireAllRevoked,
  selectionText,
} from './replacement-progress.ts';

const idOption = {
  type: 'string',
  valueHint: 'ID',
  positional: 'or-flag',
  description: 'the id of the replacement',
} as const;

const status = command({
  name: 'replace status',
  description: 'List replacements, or show the progress of one',
  examples: [
    { does: 'List all replacements', line: 'vault replace status' },
    {
      does: 'Show one; exit code 1 unless every old version is revoked',
      line: 'vault replace status 1',
    },
    { does: 'Wait until it ends', line: 'vault replace status 1 --wait' },
  ],
  options: {
    id: { ...idOption, required: false },
    wait: { type: 'boolean', description: 'show progress and wait until the replacement ends' },
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const id = args.id === undefined ? undefined : idFrom(args.id);
    if (id === undefined && args.wait) throw new Misuse('--wait needs one replacement', 'Add its id.');
    const work = async (place: ReturnType<typeof replacementsHere>) => {
      if (id === undefined) {
        printList(terminal, args, await place.list(), {
          none: 'No replacements yet.\n  Try: vault replace start --help',
          columns: [
            ...['ID', 'STATE', 'REASON'],
            { title: 'SELECTED', holds: 'text' },
            { title: 'CREATED', holds: 'time' },
            { title: 'DEADLINE', holds: 'time' },
            { title: 'CERTIFICATES', holds: 'text' },
          ],
          row: (view) => [
            ...[String(view.id), view.state, view.reason, selectionText(view)],
            ...[view.created_at, view.deadline_at, countsText(view)],
          ],
        });
        return;
      }
      if (args.wait) await followReplacement(place, terminal, id);
      const view = await place.view(id);
      printReplacement(terminal, args, view, await place.certificates(id));
      requireAllRevoked(view);
    };
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => work(replacementsHere(vault)),
      (remote) => work(replacementsThere(remote)),
    );
  },
});

const cancel = command({
  name: 'replace cancel',
  description: 'Cancel a replacement; new versions stay',
  examples: [{ does: 'Revoke no further versions', line: 'vault replace cancel 1' }],
  options: { id: { ...idOption, required: true } },
  run: async (args, terminal) => {
    const id = idFrom(args.id);
    const view = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => replacementsHere(vault).cancel(id),
      (remote) => replacementsThere(remote).cancel(id),
    );
    terminal.stderr.write(`Canceled replacement ${id}: ${countsText(view)}.\n`);
  },
});

/** Throws Misuse. */
function idFrom(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Misuse(`"${text}" is not the id of a replacement`, 'Use an id from "vault replace status".');
}

export const replaceCommands = commandGroup('replace', 'Replace many certificates in an emergency', {
  start,
  status,
  cancel,
});
