/**
 * The environment variables of settings: CERTVAULT_…, and VAULT_…, which HashiCorp's vault on the same machine uses,
 * too.
 */
import { logLevels } from '../../base/log.ts';
import type { Environment } from '../terminal/terminal.ts';
import type { Found } from './setting-values.ts';

/**
 * The settings with a VAULT_ variable that HashiCorp's vault also reads, and which of its values are meant for this
 * one.
 */
const shared: Readonly<Record<string, (value: string) => boolean>> = {
  'log-level': (value) => logLevels.some((level) => level === value),
};

/** The names of the variables of a setting; the first that is set counts. */
export function settingVariables(name: string): readonly [own: string, short: string] {
  const key = name.replaceAll('-', '_').toUpperCase();
  return [`CERTVAULT_${key}`, `VAULT_${key}`];
}

/** The value that the environment has for a setting. */
export function settingInEnvironment(name: string, environment: Environment): Found | undefined {
  const [own, short] = settingVariables(name);
  const value = environment[own];
  if (value) return { value, from: own };
  const other = environment[short];
  return other && !isForeign(name, other) ? { value: other, from: short } : undefined;
}

/** The set variables that are ignored because their value is one for HashiCorp's vault. */
export function ignoredVariables(environment: Environment): readonly string[] {
  return Object.keys(shared).flatMap((name) => {
    const [own, short] = settingVariables(name);
    const value = environment[short];
    return !environment[own] && value && isForeign(name, value) ? [short] : [];
  });
}

function isForeign(name: string, value: string): boolean {
  return shared[name] !== undefined && !shared[name](value);
}
