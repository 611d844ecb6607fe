/**
 * Makes what browsers get of assets/console: one script and one style with content-hashed names, each also compressed
 * with Brotli and gzip, and the page that names them. By itself (node build-console.mjs) it refreshes build/console,
 * which the vault serves when it runs from its sources.
 */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const root = import.meta.dirname;
const source = join(root, 'assets', 'console');

/** Of script and style together, compressed by Brotli; issue 5. */
const maxBytes = 120_000;

/**
 * Writes the files into a folder that is there. Gives their names, the compressed size of script and style, and what
 * esbuild bundled.
 */
export async function buildConsole(folder) {
  const esbuild = await import('esbuild');
  const { outputFiles, metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['main.tsx', 'theme-first.ts', 'styles/main.css'].map((name) => join(source, name)),
    outdir: folder,
    entryNames: '[name]',
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'iife',
    target: ['es2024', 'chrome125', 'firefox128', 'safari18'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    preserveSymlinks: true,
    logLevel: 'warning',
    tsconfig: join(source, 'tsconfig.json'),
  });
  const hashed = {};
  const written = [];
  let size = 0;
  const write = (name, content) => {
    fs.writeFileSync(join(folder, name), content);
    written.push(name);
    return content.length;
  };
  const icon = { path: 'icon.svg', contents: fs.readFileSync(join(source, 'icon.svg')) };
  for (const { path, contents } of [...outputFiles, icon]) {
    const [, name, extension] = /([^/\\]+)\.(\w+)$/.exec(path);
    const hash = createHash('sha256').update(contents).digest('base64url').replace(/[-_]/g, '').slice(0, 10);
    hashed[`${name}.${extension}`] = `/console/${name}-${hash}.${extension}`;
    size += writeCompressed(`${name}-${hash}.${extension}`, Buffer.from(contents), write);
  }
  const page = fs
    .readFileSync(join(source, 'index.html'), 'utf8')
    .replaceAll(
      /\{\{(.+?)\}\}/g,
      (_, name) => hashed[name] ?? fail(`index.html names ${name}, which is not built`),
    );
  writeCompressed('index.html', Buffer.from(page), write);
  if (size > maxBytes)
    fail(`the console has ${size} compressed bytes of script and style; ${maxBytes} are allowed`);
  return { files: written.sort(), size, metafile };
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
  const { files, size, metafile } = await buildConsole(folder);
  const kept = join(root, 'build', 'console');
  fs.rmSync(kept, { recursive: true, force: true });
  fs.cpSync(folder, kept, { recursive: true });
  return { folder, files, size, metafile };
}

function fail(message) {
  throw new Error(message);
}

if (import.meta.main ?? process.argv[1] === import.meta.filename) {
  fs.mkdirSync(join(root, 'build'), { recursive: true });
  const scratch = fs.mkdtempSync(join(root, 'build', 'scratch-'));
  try {
    const { size } = await refreshConsole(scratch);
    console.log(`build/console: ${(size / 1000).toFixed(1)} kB compressed`);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}
