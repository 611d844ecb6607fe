/**
 * What the client installer would refuse, said while the command is being put together. The script has the last word;
 * test/console/installer-checks.test.ts holds both to the same choices.
 */
import type { InstallerChoices } from './shell-command.ts';

export type InstallerErrors = { readonly [Field in keyof InstallerChoices]?: string };

/** By field, what is wrong; nothing where the installer would take it. */
export function installerErrors(choices: InstallerChoices): InstallerErrors {
  const checks: [keyof InstallerChoices, string | undefined][] = [
    ['files', fileError(choices.files)],
    ['destination', destinationError(choices.destination)],
    ['reloadCommand', hasControl(choices.reloadCommand) ? 'A command here is one line.' : undefined],
    ['schedule', scheduleError(choices.schedule)],
    ['verify', verifyError(choices)],
    ['owner', ownerError(choices.owner)],
    ['group', ownerError(choices.group)],
    ['mode', /^(0?[0-7]{3})?$/.test(choices.mode) ? undefined : 'Write an octal mode such as 0640.'],
    ['pin', choices.trust === 'pin' ? pinError(choices.pin) : undefined],
    ['caFile', choices.trust === 'ca-file' ? caFileError(choices.caFile) : undefined],
  ];
  return Object.fromEntries(checks.filter(([, error]) => error !== undefined));
}

function fileError(files: InstallerChoices['files']): string | undefined {
  if (files.length === 0) return 'Choose at least one file.';
  const names = files.map(({ artifact, output }) => (output === '' ? artifact : output));
  const odd = names.find((name) => /^\.{1,2}$|^\.vault-|[\p{Cc}/]/u.test(name) || name.length > 200);
  if (odd !== undefined) return `${JSON.stringify(odd)} cannot be the name of a file here.`;
  // On macOS two names that differ by case are one file.
  const folded = names.map((name) => name.toLowerCase());
  const twice = folded.find((name, index) => folded.indexOf(name) !== index);
  return twice === undefined ? undefined : `Two files would be called ${twice}.`;
}

function destinationError(path: string): string | undefined {
  if (path === '') return 'A directory is needed.';
  if (hasControl(path)) return 'A path has no line breaks.';
  if (!path.startsWith('/')) return 'Write the whole path, from / on.';
  if (`${path}/`.includes('/../')) return 'Write the path without "..".';
  return /^[/.]*$/.test(path) ? 'The root directory is no place for certificates.' : undefined;
}

/** Five fields; that each of them makes sense is left to the installer. */
function scheduleError(schedule: string): string | undefined {
  if (schedule === '' || /^@(hourly|daily|midnight|weekly|monthly|yearly|annually)$/.test(schedule)) return;
  const isCron = /^[0-9*,/A-Za-z-]+( +[0-9*,/A-Za-z-]+){4}$/.test(schedule);
  return isCron ? undefined : 'Write five fields such as 17 3 * * *, or @daily.';
}

function verifyError({ verify, files }: InstallerChoices): string | undefined {
  if (verify === '') return undefined;
  if (!/^[A-Za-z0-9.[][A-Za-z0-9.:[\]-]*:\d+$/.test(verify)) return 'Write HOST:PORT, such as localhost:443.';
  const isServed = files.some(({ artifact }) => /^(certificate|fullchain)\./.test(artifact));
  return isServed ? undefined : 'It needs the certificate or the full chain among the files.';
}

function ownerError(name: string): string | undefined {
  return /^([A-Za-z0-9._@\\+][A-Za-z0-9._@\\+-]*)?$/.test(name)
    ? undefined
    : 'This is no name of a user or group.';
}

function pinError(pin: string): string | undefined {
  return /^sha256\/\/[A-Za-z0-9+/]{43}=$/.test(pin)
    ? undefined
    : 'A pin is sha256// and 44 characters of base64.';
}

function caFileError(path: string): string | undefined {
  return path.startsWith('/') && !hasControl(path)
    ? undefined
    : 'Write the whole path of a PEM file, from / on.';
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}
