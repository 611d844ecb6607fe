/**
 * The master key from a program: of a KMS, an HSM, a TPM or a password manager, so that no disk holds it. Never through a
 * shell, never for long, and what it prints is never shown.
 */
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { MasterKey, masterKeySize } from '../../crypto/master-key.ts';
import { printedKey } from '../../crypto/printed-key.ts';
import { hookFailure } from '../../net/hook-failure.ts';
import { runHook } from '../../net/hook-process.ts';
import type { MasterKeyCommand } from '../settings/master-key-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseForeignProgram } from '../terminal/private-files.ts';

/** An operator may have to touch a token or confirm a push notification. */
const timeoutMs = 60 * second;

/** A longer output is no key. */
const mostPrinted = 1024;

/** Runs the program and reads the key that it prints. Throws OperatorError. */
export async function masterKeyFrom(
  world: Pick<World, 'sleep'>,
  [program, ...args]: MasterKeyCommand,
  { credentialsDir }: Pick<Settings, 'credentialsDir'>,
): Promise<MasterKey> {
  refuseForeignProgram(program);
  const printed = Buffer.alloc(mostPrinted);
  const tooMuch = new AbortController();
  let size = 0;
  const run = {
    ...{ program, args, timeoutMs },
    // Where systemd puts secrets for this service: the program may need one.
    environment: credentialsDir === undefined ? {} : { CREDENTIALS_DIRECTORY: credentialsDir },
    takeOutput: (chunk: Buffer) => {
      if (size + chunk.length > mostPrinted) tooMuch.abort();
      else chunk.copy(printed, size);
      size += chunk.length;
      chunk.fill(0);
    },
  };
  try {
    const end = await runHook(world, run, tooMuch.signal);
    if (tooMuch.signal.aborted) throw noKey(program, `more than ${mostPrinted} bytes`);
    if (!end.started || end.stopped !== undefined || end.exitCode !== 0) {
      const failure = hookFailure(run, end, [printed.subarray(0, size).toString('latin1').trim()]);
      throw new OperatorError(`the master key command failed: ${failure}`, {
        hint: 'Run it by hand as the user of the vault. It gets PATH, HOME, LANG and CREDENTIALS_DIRECTORY, and 60 seconds.',
      });
    }
    const bytes = printedKey(printed.subarray(0, size));
    if (bytes !== undefined) return new MasterKey(bytes);
    throw noKey(program, size === 0 ? 'nothing' : `${size} bytes`);
  } finally {
    printed.fill(0);
  }
}

/** What of the settings holds the key, in words for messages. */
export function masterKeySource({ masterKeyFile, masterKeyCommand }: Settings): string {
  return masterKeyCommand === undefined ? masterKeyFile : `the key that ${masterKeyCommand[0]} prints`;
}

function noKey(program: string, printed: string): OperatorError {
  return new OperatorError(`the master key command ${program} printed ${printed}, which is no master key`, {
    hint: `It has to print ${masterKeySize} bytes: as they are, as 64 hexadecimal digits, or as base64.`,
  });
}
