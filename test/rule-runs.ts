/** Runs of Biome and dependency-cruiser, as `npm run check` does them, over sources of a test. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');

export type Sources = Readonly<Record<string, string>>;

/** What a tool says about one file: the rule, or for Biome's plugins their message. */
export type Finding = { readonly file: string; readonly rule: string };

/** A configuration of Biome as far as the tests change it. */
export type BiomeConfig = {
  overrides: { includes?: string[]; plugins?: string[]; linter?: unknown }[];
  [key: string]: unknown;
};

/** The configuration of the project. Its comments are lines of their own. */
export function biomeConfig(): BiomeConfig {
  const text = readFileSync(join(root, 'biome.jsonc'), 'utf8');
  return JSON.parse(text.replaceAll(/^ *\/\/.*$/gm, '')) as BiomeConfig;
}

/** The message of a plugin: `./lint/clock.grit`. */
export function messageOf(plugin: string): string {
  const [, message = ''] = /message="([^"]+)"/.exec(readFileSync(join(root, plugin), 'utf8')) ?? [];
  return message;
}

/** A folder with the rules of the project and these sources. */
export function writeProject(dir: string, sources: Sources, config: BiomeConfig = biomeConfig()): void {
  for (const name of ['package.json', '.dependency-cruiser.mjs', 'lint']) {
    cpSync(join(root, name), join(dir, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  writeFileSync(join(dir, '.gitignore'), 'node_modules\n');
  writeFileSync(join(dir, 'biome.jsonc'), JSON.stringify(config));
  for (const [path, text] of Object.entries(sources)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
}

/** Lint only: how the sources of a test are formatted does not matter. */
export function runBiome(dir: string, paths: readonly string[] = ['.']): Finding[] {
  const output = run(dir, 'biome', ['lint', '--reporter=json', '--max-diagnostics=none', ...paths]);
  const { diagnostics } = JSON.parse(output) as {
    diagnostics: { category: string; message: string; severity: string; location: { path: string } }[];
  };
  return diagnostics
    .filter(({ severity }) => severity !== 'information')
    .map(({ category, message, location }) => ({
      file: location.path.replace(/^\.\//, ''),
      rule: category === 'plugin' ? message : (category.split('/').at(-1) ?? category),
    }));
}

export function runDependencyCruiser(dir: string): Finding[] {
  const output = run(dir, 'depcruise', [
    'src',
    'assets/console',
    '--config',
    '.dependency-cruiser.mjs',
    '-T',
    'json',
  ]);
  const { summary } = JSON.parse(output) as {
    summary: { violations: { from: string; rule: { name: string } }[] };
  };
  return summary.violations.map(({ from, rule }) => ({ file: from, rule: rule.name }));
}

function run(dir: string, program: string, args: readonly string[]): string {
  const path = join(root, 'node_modules', '.bin', program);
  const { stdout, stderr, error } = spawnSync(path, args, {
    cwd: dir,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined || !stdout.startsWith('{')) throw error ?? new Error(`${program}: ${stderr}`);
  return stdout;
}
