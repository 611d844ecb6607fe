/** Kills the client installer at a chosen step, without a warning. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine, Shell } from '../harness/client/installer.ts';

/**
 * Programs that count their calls and kill the script before call number $KILL_AT. In a pipeline two may count at once.
 */
export function deadly(client: Machine, programs: readonly string[]): void {
  for (const program of programs) {
    const real =
      program === 'crontab'
        ? join(client.bin, 'crontab.real')
        : `$(PATH="${process.env.PATH}" command -v ${program})`;
    if (program === 'crontab') cpSync(join(client.bin, 'crontab'), real);
    client.fake(
      program,
      `[ -n "$KILL_AT" ] || exec "${real}" "$@"
      printf x >>"${client.home}/calls"
      if [ "$(wc -c <"${client.home}/calls")" -ge "$KILL_AT" ] && /bin/mkdir "${client.home}/killed" 2>/dev/null; then
        kill -9 "$(cat "${client.home}/pid")"
        exit 1
      fi
      exec "${real}" "$@"`,
    );
  }
  // exec keeps the process id, so it is the script's.
  client.fake('start', `echo $$ >"${client.home}/pid"; exec "$@"`);
}

/** Runs the script and kills it at this step. Returns false if the script exited before. */
export async function killedAt(
  client: Machine,
  step: number,
  shell: Shell,
  args: readonly string[],
  key?: string,
): Promise<boolean> {
  for (const mark of ['calls', 'killed']) rmSync(join(client.home, mark), { recursive: true, force: true });
  const environment = { KILL_AT: String(step), SERVICE_API_KEY: key };
  const { code } = await client.run(args, { environment, shell, through: [join(client.bin, 'start')] });
  return code === null;
}
