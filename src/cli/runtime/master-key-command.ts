/**
 * Reads the master key from a program, such as a client of a KMS, HSM, TPM or password manager, so that no disk holds
 * it. The program runs without a shell and with a time limit, and its output is never shown.
 */
import { access, type FileHandle } from 'node:fs/promises';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { openWalked, refuseUntrusted } from '../../base/paths/trusted-path.ts';
import { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { MasterKey, masterKeySize } from '../../crypto/secrets/master-key.ts';
import { hookFailure } from '../../net/hook-failure.ts';
import { runHook } from '../../net/hook-process.ts';
import type { MasterKeyCommand } from '../settings/master-key-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseForeignProgram } from '../terminal/private-files.ts';

/** An operator may have to touch a token or confirm a push notification. */
const timeoutMs = 60 * second;

/** Longer output is not a key. */
const maxPrinted = 1024;

const hexadecimal = /^[0-9a-f]{64}$/i;
/** Also the URL alphabet (RFC 4648 §5), with or without padding. */
const base64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** Runs the program and reads the key that it prints. Throws OperatorError. */
export async function masterKeyFrom(
  world: Pick<World, 'sleep'>,
  [program, ...args]: MasterKeyCommand,
  { credentialsDir }: Pick<Settings, 'credentialsDir'>,
): Promise<MasterKey> {
  const opened = await openedProgram(program);
  const printed = Buffer.alloc(maxPrinted);
  const tooMuch = new AbortController();
  let size = 0;
  const run = {
    ...{ program, args, timeoutMs, descriptor: opened?.fd },
    // The program may need a systemd credential of this service.
    environment: credentialsDir === undefined ? {} : { CREDENTIALS_DIRECTORY: credentialsDir },
    takeOutput: (chunk: Buffer) => {
      if (size + chunk.length > maxPrinted) tooMuch.abort();
      else chunk.copy(printed, size);
      size += chunk.length;
      chunk.fill(0);
    },
  };
  try {
    const end = await runHook(world, run, tooMuch.signal);
    if (tooMuch.signal.aborted) throw invalidKey(program, `more than ${maxPrinted} bytes`);
    if (!end.started || end.stopped !== undefined || end.exitCode !== 0) {
      const failure = hookFailure(run, end, [printed.subarray(0, size).toString('latin1').trim()]);
      throw new OperatorError(`the master key command failed: ${failure}`, {
        hint: 'Run it by hand as the user that runs the vault. It gets PATH, HOME, LANG and CREDENTIALS_DIRECTORY, and must finish within 60 seconds.',
      });
    }
    const bytes = printedKey(printed.subarray(0, size));
    if (bytes !== undefined) return new MasterKey(bytes);
    throw invalidKey(program, size === 0 ? 'nothing' : `${size} bytes`);
  } finally {
    printed.fill(0);
    await opened?.close();
  }
}

/**
 * The key in `printed`: 32 bytes, 64 hexadecimal digits, or base64, because key stores differ in what they can print.
 * White space may surround text. Undefined for anything else, including 32 bytes of plain text, which are half a
 * hexadecimal key or a password.
 */
function printedKey(printed: Buffer): Secret | undefined {
  if (printed.length === masterKeySize) return isText(printed) ? undefined : new Secret(Buffer.from(printed));
  const text = printed.toString('latin1').trim();
  if (hexadecimal.test(text)) return new Secret(Buffer.from(text, 'hex'));
  return base64.test(text) ? new Secret(Buffer.from(text, 'base64url')) : undefined;
}

function isText(bytes: Buffer): boolean {
  return bytes.every((byte) => (byte >= 0x20 && byte < 0x7f) || byte === 0x0a || byte === 0x0d);
}

/** How the path of the program is judged. */
const commandUse = { what: 'the master key command', groups: 'nothing' } as const;

/**
 * The program, checked and opened once, to be run by its descriptor; undefined if it has to run by its path. A script
 * does: an interpreter opens it by name, and scripts find the files that belong to them by $0. Throws OperatorError if
 * other users can change the program or its path.
 */
async function openedProgram(program: string): Promise<FileHandle | undefined> {
  refuseForeignProgram(program);
  const walked = await refuseUntrusted(program, commandUse);
  const file = await openWalked(walked).catch((error: unknown) => {
    // The vault may run a program that it may not read. No script is one.
    if (error instanceof OperatorError) throw error;
  });
  if (file === undefined) return undefined;
  let isKept = false;
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    isKept = buffer.equals(executableMagic) && (await hasDescriptors(file));
    return isKept ? file : undefined;
  } finally {
    if (!isKept) await file.close();
  }
}

/** How an executable of Linux begins. */
const executableMagic = Buffer.from('\x7fELF', 'latin1');

async function hasDescriptors({ fd }: FileHandle): Promise<boolean> {
  return access(`/proc/self/fd/${fd}`).then(
    () => true,
    () => false,
  );
}

/** The source of the master key, for messages. */
export function masterKeySource({ masterKeyFile, masterKeyCommand }: Settings): string {
  return masterKeyCommand === undefined ? masterKeyFile : `the key from ${masterKeyCommand[0]}`;
}

function invalidKey(program: string, printed: string): OperatorError {
  return new OperatorError(`the master key command ${program} printed ${printed} instead of a master key`, {
    hint: `It must print ${masterKeySize} bytes, either raw, as 64 hexadecimal digits, or as base64.`,
  });
}
