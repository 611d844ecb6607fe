/** Whether a hook may run: other users must not be able to change a program that runs with the rights of the vault. */
import { judgePath } from '../base/paths/trusted-path.ts';

/** Why a hook does not start: the error code of the system, and who can change the program, if others can. */
export type HookRefusal = { readonly started: false; readonly code: string; readonly untrusted?: string };

/**
 * Why the program with these scripts does not start; undefined if it may. What a group can change is left to `vault
 * doctor`, so that renewals go on. A path that leads nowhere is reported here, because others could put a file there
 * before it runs.
 */
export async function hookRefusal(
  program: string,
  scripts: readonly string[] = [],
): Promise<HookRefusal | undefined> {
  for (const path of [program, ...scripts]) {
    const { refused, walked } = await judgePath(path, hookUse);
    if (refused !== undefined) {
      const untrusted = `${refused.message}. ${refused.hint.replaceAll(/\s+/g, ' ')}`;
      return { started: false, code: 'EPERM', untrusted };
    }
    if (walked.code !== undefined && path === program) return { started: false, code: walked.code };
  }
  return undefined;
}

/** How the path of a hook is judged. */
export const hookUse = { what: 'the program', groups: 'all' } as const;
