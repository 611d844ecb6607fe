/** The settings of channels and deploy targets that run a local program. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';

/** In seconds. */
export const maxProgramTimeout = 600;

export const programSettings = z.strictObject({
  command: z
    .array(z.string(), { error: 'is missing; it must be a list of a program and its arguments' })
    .min(1, { error: 'must be a list of a program and its arguments' })
    .refine(([program = '']) => isAbsolute(program), {
      error: 'must begin with an absolute path (PATH is not searched)',
    })
    .refine((words) => words.every((word) => !word.includes('\0')), {
      error: 'must not contain a NUL character',
    }),
  environment: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\0]*$/))
    .default({}),
  timeout: z.int().min(1).max(maxProgramTimeout).default(60),
});

/**
 * `environment`: variables in addition to PATH, HOME, LANG and those that describe what the program gets; `timeout` in
 * seconds.
 */
export type ProgramSettings = z.output<typeof programSettings>;
