/** Channel `slack`: an incoming webhook of Slack, or of a service that accepts the same messages. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, webhookUrl } from './chat-channel.ts';
import { type ChatMessage, codeText, cut } from './chat-message.ts';

const config = z.strictObject({ url: webhookUrl, ca: trustedCa });

/** Sizes that Slack accepts; the text of a section leaves room for the backticks. */
const most = { header: 150, section: 3000 - 8, notification: 1000 };

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const encode = (character: string): string => entities[character] ?? character;

export const slackChannel = chatChannel({
  type: 'slack',
  title: 'Slack',
  config,
  plain: 'url',
  gathers: true,
  request: ({ url }, message) => ({ url, body: { text: fallback(message), blocks: blocks(message) } }),
});

/** What notifications on phones show. */
function fallback({ label, title }: ChatMessage): string {
  return cut(`${label}: ${title}`, most.notification, { encode });
}

function blocks({ label, title, text, certificate, link }: ChatMessage): object[] {
  const facts = [
    `*${label}*`,
    ...(certificate === undefined ? [] : [`Certificate ${cut(certificate, 300, { encode })}`]),
    ...(link === undefined ? [] : [`<${cut(link, 1000, { encode })}|Open the console>`]),
  ];
  return [
    { type: 'header', text: { type: 'plain_text', text: cut(title, most.header), emoji: false } },
    // Otherwise Slack would turn names and addresses into links and mentions.
    {
      type: 'section',
      text: mrkdwn(`\`\`\`\n${cut(codeText(text), most.section, { encode })}\n\`\`\``),
    },
    { type: 'context', elements: [mrkdwn(facts.join(' · '))] },
  ];
}

function mrkdwn(text: string): object {
  return { type: 'mrkdwn', text, verbatim: true };
}
