/**
 * The same commands on a vault of this machine and on one at a server, which begin alike: both print the same, and end
 * with the same exit code.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { remoteCommands } from '../../../src/cli/remote/remote-commands.ts';
import { routes } from '../http/all-routes.ts';
import { tempDir } from '../temp-dir.ts';
import { commandWords } from './command-line.ts';
import { type Outcome, serve, vault } from './vault-process.ts';

/** A command line, perhaps with standard input. */
export type Step = string | { readonly line: string; readonly input: string };

/** What differs between two vaults: times, keys and what is computed from them, addresses, and who asked. */
function normal(text: string): string {
  return (
    text
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME')
      .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?/g, 'TIME')
      .replaceAll(/\b[0-9a-f]{64}\b/g, 'HASH')
      .replaceAll(/sha256\/\/[\w+/]{43}=/g, 'PIN')
      .replaceAll(/\b(kid|hmac_key)(\W+)[\w-]+/g, '$1$2KEY')
      .replaceAll(/--eab-(kid|hmac-key) [\w-]+/g, '--eab-$1 KEY')
      .replaceAll(/whsec_[\w+/=]+/g, 'KEY')
      .replaceAll(/v[ek]_[\w-]+(?:\.[\w-]+)?/g, 'KEY')
      .replaceAll(/("serial": ?)"[0-9A-Fa-f]+"/g, '$1"SERIAL"')
      .replaceAll(/(CN=[\w ]+ (?:Root|Intermediate)) [0-9a-f]{8}\b/g, '$1 NUMBER')
      .replaceAll(/("etag": ?)"[^\n]*"/g, '$1"ETAG"')
      .replaceAll(/http:\/\/127\.0\.0\.1:\d+(?=\/(?:api|acme))/g, '')
      .replaceAll(/("ip": ?)(?:null|"127\.0\.0\.1")/g, '$1IP')
      .replaceAll(/("request_id": ?)(?:null|"[\w-]+")/g, '$1REQUEST')
      // The key that commands use at the server.
      .replaceAll(/^1 +remote .*$/gm, '1 remote')
      .replaceAll(
        /("name": ?"remote",[^}]*"last_used_at": ?)(?:null|"TIME")(,\s*"last_used_ip": ?)[^,}\s]+/g,
        '$1AT$2IP',
      )
      .replaceAll(/api-key:1:remote|local-cli/g, 'CALLER')
      .replaceAll(/(?<=-----\n)[\w+/=\n]+(?=\n-----)/g, 'PEM')
      // Whether a renewal still waits, and for which server, is a matter of the moment.
      .replaceAll(/^ *(?:queued|no "vault serve" is running; renewing in this process)\n/gm, '')
      .replaceAll(/(CALLER +\S+ +\S+) +(?:-|127\.0\.0\.1) /g, '$1  IP ')
      .replaceAll(/^Created a new vault in .*\n/gm, '')
      .replaceAll(/\bmsg_[\w-]+/g, 'MESSAGE')
      .replaceAll(/ {2,}/g, '  ')
  );
}

/**
 * Runs the steps in sequence on both vaults. In a line, a name of `files` stands for the path of that file, and OUT
 * for a directory to write to. `settings` are variables of both servers, and of the commands on this machine.
 */
export async function bothWays(
  t: TestContext,
  steps: readonly Step[],
  files: Readonly<Record<string, string>> = {},
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const dir = tempDir(t);
  const [here, there] = [join(dir, 'here'), join(dir, 'there')];
  const made = async (data: string) => {
    const words = commandWords('api-key create --name remote --role admin');
    const { code, stdout, stderr } = await vault([...words, '--data-dir', data]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  await made(here);
  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, await made(there), { mode: 0o600 });
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(dir, name), content, { mode: 0o600 });
  // A server there as here, so that both run what is queued.
  await serve(t, here, { environment: settings });
  const server = await serve(t, there, { environment: settings });
  const { url } = server;
  const environment = { CERTVAULT_SERVER: url, CERTVAULT_TOKEN_FILE: tokenFile };
  const wrong: string[] = [];
  for (const step of steps) {
    const { line, input } = typeof step === 'string' ? { line: step, input: undefined } : step;
    const words = (side: string) =>
      commandWords(line).map((word) => {
        if (word === 'OUT') return join(dir, `out-${side}`);
        return Object.hasOwn(files, word) ? join(dir, word) : word;
      });
    const given = input === undefined ? {} : { input };
    const ours = shown(
      await vault([...words('here'), '--data-dir', here], { ...given, environment: settings }),
      dir,
    );
    const theirs = shown(await vault(words('there'), { ...given, environment }), dir);
    if (ours !== theirs) wrong.push(`$ vault ${line}\n${differences(ours, theirs)}`);
  }
  assert.deepEqual(wrong, [], wrong.join('\n'));
  await server.end();
  assert.deepEqual(operationsIn(server.log()), operationsOf(steps));
}

/** The operations that the table names for the commands of the steps. */
function operationsOf(steps: readonly Step[]): string[] {
  const lines = steps.map((step) => (typeof step === 'string' ? step : step.line));
  const used = Object.entries(remoteCommands).filter(([command]) =>
    lines.some((line) => line.startsWith(`${command} `) || line === command),
  );
  return [...new Set(used.flatMap(([, ids]) => ids))].toSorted();
}

/** The operations of the requests in the server's log. */
function operationsIn(log: string): string[] {
  const requests = log.split('\n').flatMap((line) => {
    const { msg, method, route } = line.startsWith('{') ? JSON.parse(line) : {};
    return msg === 'request' ? [`${method} ${route}`] : [];
  });
  const ids = new Map(routes.map(({ method, path, id }) => [`${method} ${path}`, id]));
  return [...new Set(requests.map((request) => ids.get(request) ?? request))].toSorted();
}

function shown({ code, stdout, stderr }: Outcome, dir: string): string {
  const placed = (text: string) =>
    normal(text.replaceAll(dir, 'DIR').replaceAll(/DIR\/(?:out-)?(?:here|there)/g, 'PLACE'));
  return `${placed(stdout)}\n${placed(stderr)}\nexit code ${code}`;
}

/** The lines that only one of them has. */
function differences(ours: string, theirs: string): string {
  const [mine, others] = [ours.split('\n'), theirs.split('\n')];
  const only = (lines: readonly string[], not: readonly string[], sign: string) =>
    lines.filter((line) => !not.includes(line)).map((line) => `  ${sign} ${line}`);
  const lines = [...only(mine, others, 'here: '), ...only(others, mine, 'there:')];
  return lines.length === 0 ? '  the same lines in another order' : lines.join('\n');
}
