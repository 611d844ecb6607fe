/**
 * Makes what browsers get of assets/console: a style and scripts with content-hashed names, each also compressed with
 * Brotli and gzip, and the page that names them. By itself (node build-console.mjs) it refreshes build/console,
 * which the vault serves when it runs from its sources.
 */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const root = import.meta.dirname;
const source = join(root, 'assets', 'console');

/** Of scripts and style, compressed by Brotli: those of the first page, and all. */
const maxFirstBytes = 70_000;
const maxBytes = 120_000;

/** The script of the pages that are loaded after the first one (assets/console/later.tsx). */
const laterPages = 'later-pages';

/**
 * Writes the files into a folder that is there. Gives their names, the compressed size of scripts and style (of the
 * first page, and of all), and what esbuild bundled.
 */
export async function buildConsole(folder) {
  const esbuild = await import('esbuild');
  const common = {
    absWorkingDir: root,
    outdir: folder,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    target: ['es2024', 'chrome125', 'firefox128', 'safari18'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    preserveSymlinks: true,
    logLevel: 'warning',
    tsconfig: join(source, 'tsconfig.json'),
  };
  const entryPoints = (...names) => names.map((name) => join(source, name));
  const builds = await Promise.all([
    esbuild.build({ ...common, entryPoints: entryPoints('main.tsx'), format: 'esm', splitting: true }),
    esbuild.build({
      ...common,
      entryPoints: entryPoints('theme-first.ts', 'styles/main.css'),
      format: 'iife',
    }),
  ]);
  const hashed = {};
  const written = [];
  const size = { first: 0, all: 0 };
  const write = (name, content) => {
    fs.writeFileSync(join(folder, name), content);
    written.push(name);
    return content.length;
  };
  const icon = { path: 'icon.svg', contents: fs.readFileSync(join(source, 'icon.svg')) };
  for (const { path, contents } of [...builds.flatMap(({ outputFiles }) => outputFiles), icon]) {
    const { name, file } = named(path, contents);
    hashed[name] = `/console/${file}`;
    const bytes = writeCompressed(file, Buffer.from(contents), write);
    size.all += bytes;
    if (!name.startsWith(laterPages)) size.first += bytes;
  }
  const page = fs
    .readFileSync(join(source, 'index.html'), 'utf8')
    .replaceAll(
      /\{\{(.+?)\}\}/g,
      (_, name) => hashed[name] ?? fail(`index.html names ${name}, which is not built`),
    );
  writeCompressed('index.html', Buffer.from(page), write);
  if (size.first > maxFirstBytes || size.all > maxBytes) {
    fail(
      `the console has ${size.all} compressed bytes of scripts and style, ${size.first} of them for the first page; ${maxBytes} and ${maxFirstBytes} are allowed`,
    );
  }
  return { files: written.sort(), size, metafiles: builds.map(({ metafile }) => metafile) };
}

/**
 * The name that index.html uses and the file's name. Parts of a split script have a hash from esbuild, which other
 * parts contain.
 */
function named(path, contents) {
  const [, stem, extension] = /([^/\\]+)\.(\w+)$/.exec(path);
  const part = /^(.+)-[A-Z0-9]{8}$/.exec(stem);
  if (part) return { name: `${part[1]}.${extension}`, file: `${stem}.${extension}` };
  const hash = createHash('sha256').update(contents).digest('base64url').replace(/[-_]/g, '').slice(0, 10);
  return { name: `${stem}.${extension}`, file: `${stem}-${hash}.${extension}` };
}

/** The sizes as the build's log line says them. */
export function consoleSizeText({ first, all }) {
  const kilobytes = (bytes) => (bytes / 1000).toFixed(1);
  return `${kilobytes(first)} kB compressed, ${kilobytes(all)} kB with later pages`;
}

/** The content as it is and compressed; gives the size by Brotli. */
function writeCompressed(name, content, write) {
  write(name, content);
  write(`${name}.gz`, gzipSync(content, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  return write(`${name}.br`, brotliCompressSync(content, { params }));
}

/** Refreshes build/console, where the sources look. Its folder of this build alone is given for the executable. */
export async function refreshConsole(scratch) {
  const folder = fs.mkdtempSync(join(scratch, 'console-'));
  const { files, size, metafiles } = await buildConsole(folder);
  const kept = join(root, 'build', 'console');
  fs.rmSync(kept, { recursive: true, force: true });
  fs.cpSync(folder, kept, { recursive: true });
  return { folder, files, size, metafiles };
}

function fail(message) {
  throw new Error(message);
}

if (import.meta.main ?? process.argv[1] === import.meta.filename) {
  fs.mkdirSync(join(root, 'build'), { recursive: true });
  const scratch = fs.mkdtempSync(join(root, 'build', 'scratch-'));
  try {
    const { size } = await refreshConsole(scratch);
    console.log(`build/console: ${consoleSizeText(size)}`);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}
