/**
 * Validates the options of the installer command while the person fills in the form. The script validates them again;
 * test/console/installer/installer-checks.test.ts checks that both agree.
 */
import { hasKeystore, hasPrivateKey, type InstallerChoices } from './shell-command.ts';

export type InstallerErrors = { readonly [Field in keyof InstallerChoices]?: string };

/** Error messages by field; empty if the installer accepts the options. */
export function installerErrors(choices: InstallerChoices): InstallerErrors {
  const checks: [keyof InstallerChoices, string | undefined][] = [
    ['files', fileError(choices.files) ?? localKeyError(choices)],
    ['keystorePasswordFile', hasKeystore(choices.files) ? passwordFileError(choices) : undefined],
    ['destination', destinationError(choices.destination)],
    ['reloadCommand', hasControl(choices.reloadCommand) ? 'The command must be a single line.' : undefined],
    ['schedule', scheduleError(choices.schedule)],
    ['verify', verifyError(choices)],
    ['owner', ownerError(choices.owner)],
    ['group', ownerError(choices.group)],
    ['mode', /^(0?[0-7]{3})?$/.test(choices.mode) ? undefined : 'The mode must be octal, such as 0640.'],
    ['pin', choices.trust === 'pin' ? pinError(choices.pin) : undefined],
    ['caFile', choices.trust === 'ca-file' ? caFileError(choices.caFile) : undefined],
  ];
  return Object.fromEntries(checks.filter(([, error]) => error !== undefined));
}

function fileError(files: InstallerChoices['files']): string | undefined {
  if (files.length === 0) return 'Select at least one file.';
  const names = files.map(({ artifact, output }) => (output === '' ? artifact : output));
  const odd = names.find((name) => /^\.{1,2}$|^\.vault-|[\p{Cc}/]/u.test(name) || name.length > 200);
  if (odd !== undefined) return `${JSON.stringify(odd)} is not allowed as a file name.`;
  // macOS file systems ignore case by default.
  const folded = names.map((name) => name.toLowerCase());
  const twice = folded.find((name, index) => folded.indexOf(name) !== index);
  return twice === undefined ? undefined : `Two files have the name ${twice}.`;
}

function localKeyError({ withLocalKey, files }: InstallerChoices): string | undefined {
  return !withLocalKey || hasPrivateKey(files) ? undefined : 'Select a file for the private key.';
}

function destinationError(path: string): string | undefined {
  if (path === '') return 'Enter a directory.';
  if (hasControl(path)) return 'The path must not contain line breaks.';
  if (!path.startsWith('/')) return 'Enter an absolute path.';
  if (`${path}/`.includes('/../')) return 'The path must not contain "..".';
  return /^[/.]*$/.test(path) ? 'The destination must not be the root directory.' : undefined;
}

/** Checks for five fields. The installer checks the fields themselves. */
function scheduleError(schedule: string): string | undefined {
  if (schedule === '' || /^@(hourly|daily|midnight|weekly|monthly|yearly|annually)$/.test(schedule)) return;
  const isCron = /^[0-9*,/A-Za-z-]+( +[0-9*,/A-Za-z-]+){4}$/.test(schedule);
  return isCron ? undefined : 'Enter five fields such as 17 3 * * *, or @daily.';
}

function verifyError({ verify, files }: InstallerChoices): string | undefined {
  if (verify === '') return undefined;
  if (!/^[A-Za-z0-9.[][A-Za-z0-9.:[\]-]*:\d+$/.test(verify)) return 'Enter HOST:PORT, such as localhost:443.';
  const isServed = files.some(({ artifact }) =>
    /^(certificate\.crt|fullchain\.|combined\.pem$)/.test(artifact),
  );
  return isServed ? undefined : 'To verify, include the certificate or the full chain as PEM in the files.';
}

function ownerError(name: string): string | undefined {
  return /^([A-Za-z0-9._@\\+][A-Za-z0-9._@\\+-]*)?$/.test(name)
    ? undefined
    : 'This is not a valid user or group name.';
}

function pinError(pin: string): string | undefined {
  return /^sha256\/\/[A-Za-z0-9+/]{43}=$/.test(pin)
    ? undefined
    : 'The pin must be sha256// followed by 44 characters of base64.';
}

function passwordFileError({ keystorePasswordFile: path }: InstallerChoices): string | undefined {
  return path.startsWith('/') && !hasControl(path)
    ? undefined
    : 'Enter the absolute path of a file with the password in its first line.';
}

function caFileError(path: string): string | undefined {
  return path.startsWith('/') && !hasControl(path) ? undefined : 'Enter the absolute path of a PEM file.';
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}
