/** `vault notification add …`: one command per channel type, with settings as options and secrets in a file. */
import { isUtf8 } from 'node:buffer';
import { OperatorError } from '../../../base/operator-error.ts';
import { placeholders } from '../../../channels/webhook-template.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { chatCommands } from './notification-add-chat.ts';
import { addFromOptions, addOptions, ca, caFile, number } from './notification-options.ts';

const webhook = command({
  name: 'notification add webhook',
  description: 'Add a webhook that receives signed JSON',
  examples: [
    {
      does: 'Send failures to a webhook; prints its signing secret unless a file sets one',
      line: 'vault notification add webhook --channel ops --url https://hooks.example.com/vault',
    },
    {
      does: 'Send every new version of some certificates',
      line: "vault notification add webhook --channel deploy --url https://deploy.example.com/vault --event certificate.issued --certificate 'web*'",
    },
    {
      does: 'Post a body of your own',
      line: 'vault notification add webhook --channel chat --url https://chat.example.com/hook --template body.json',
    },
  ],
  options: {
    ...addOptions,
    url: {
      type: 'string',
      valueHint: 'URL',
      description: 'the URL to post to; put a URL that holds a token in the secret file (url: …)',
    },
    template: {
      type: 'string',
      valueHint: 'FILE',
      description: `the body to send instead of the JSON, with ${placeholders.map((name) => `{{${name}}}`).join(', ')}`,
    },
    'content-type': {
      type: 'string',
      valueHint: 'TYPE',
      description: 'the media type of the template (default: application/json)',
    },
    ...caFile,
  },
  run: async (args, terminal) =>
    addFromOptions('webhook', args, terminal, {
      ...(args.url !== undefined && { url: args.url }),
      ...(args.template !== undefined && { template: await templateIn(args.template, terminal) }),
      ...(args['content-type'] !== undefined && { content_type: args['content-type'] }),
      ...(await ca(args, terminal)),
    }),
});

const email = command({
  name: 'notification add email',
  description: 'Add email over SMTP, with the password in a file',
  examples: [
    {
      does: 'Email two people, with the SMTP password in a file',
      line: 'vault notification add email --channel mail --server mail.example.com:587 --from vault@example.com --to ops@example.com --to night@example.com --username vault --secret-file smtp-password.txt',
    },
    {
      does: 'Email only a daily digest',
      line: 'vault notification add email --channel digest --server mail.example.com --from vault@example.com --to team@example.com --event none --digest 07:00',
    },
  ],
  options: {
    ...addOptions,
    server: { type: 'string', valueHint: 'HOST[:PORT]', description: 'the mail server' },
    security: {
      type: 'string',
      valueHint: 'HOW',
      description: 'starttls, tls (implicit TLS) or none (default: starttls)',
    },
    from: { type: 'string', valueHint: 'ADDRESS', description: 'the sender address' },
    to: { type: 'string', valueHint: 'ADDRESS', multiple: true, description: 'a recipient address' },
    username: { type: 'string', valueHint: 'NAME', description: 'the SMTP user name' },
    ...caFile,
  },
  run: async (args, terminal) => {
    const { security, from, to, username } = args;
    await addFromOptions('email', args, terminal, {
      ...(args.server !== undefined && server(args.server)),
      ...(security !== undefined && { security }),
      ...(from !== undefined && { from }),
      ...(to.length > 0 && { to }),
      ...(username !== undefined && { username }),
      ...(await ca(args, terminal)),
    });
  },
});

const exec = command({
  name: 'notification add exec',
  description: 'Add a program that reads JSON on standard input',
  examples: [
    {
      does: 'Run a program for each notification',
      line: 'vault notification add exec --channel pager --command /usr/local/bin/page --argument urgent',
    },
  ],
  options: {
    ...addOptions,
    command: { type: 'string', valueHint: 'PATH', description: 'the absolute path of the program' },
    argument: {
      type: 'string',
      valueHint: 'TEXT',
      multiple: true,
      description: 'an argument of the program',
    },
    timeout: {
      type: 'string',
      valueHint: 'SECONDS',
      description: 'kill the program after this long (default: 60)',
    },
  },
  run: async (args, terminal) => {
    const { command: program, argument, timeout } = args;
    await addFromOptions('exec', args, terminal, {
      ...(program !== undefined && { command: [program, ...argument] }),
      ...(timeout !== undefined && { timeout: number('--timeout', timeout) }),
    });
  },
});

export const notificationAddCommands = commandGroup(
  'notification add',
  'Add a webhook, email, program or chat as a channel',
  { webhook, email, exec, ...chatCommands },
);

async function templateIn(path: string, terminal: Terminal): Promise<string> {
  const bytes = await readInput(path, terminal);
  if (!isUtf8(bytes)) {
    throw new OperatorError(`${path} is not UTF-8 text`, { hint: 'Save the template as UTF-8.' });
  }
  return bytes.toString('utf8');
}

/** `mail.example.com:587`, `[2001:db8::1]:25`, `mail.example.com` */
function server(text: string): { host: string; port?: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined)
    throw new Misuse(
      `--server: "${text}" is not HOST[:PORT]`,
      'Use a host and port, such as mail.example.com:587.',
    );
  return { host, ...(port !== undefined && { port: Number(port) }) };
}
