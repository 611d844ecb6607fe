/** Channel `teams`: an Adaptive Card for a workflow of Microsoft Teams that posts what its webhook receives. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, webhookUrl } from './chat-channel.ts';
import { byteSize, type ChatMessage, cut, type Severity } from './chat-message.ts';

const config = z.strictObject({ url: webhookUrl, ca: trustedCa });

/** Teams accepts 28 KB; each line of text becomes an element of the card with about 150 bytes around it. */
const most = { title: 300, text: 10_000, lines: 60 };

const colors: Readonly<Record<Severity, string>> = {
  critical: 'Attention',
  error: 'Attention',
  warning: 'Warning',
  info: 'Default',
};

export const teamsChannel = chatChannel({
  type: 'teams',
  title: 'Microsoft Teams',
  config,
  plain: 'url',
  gathers: true,
  request: ({ url }, message) => ({
    url,
    body: {
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: card(message),
        },
      ],
    },
  }),
});

function card({ label, severity, isRecovery, title, text, link }: ChatMessage): object {
  const color = isRecovery ? 'Good' : colors[severity];
  return {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    msteams: { width: 'Full' },
    body: [
      line(label, { color, weight: 'Bolder' }),
      line(cut(title, most.title), { size: 'Large', weight: 'Bolder' }),
      ...lines(text),
    ],
    actions: link === undefined ? [] : [{ type: 'Action.OpenUrl', title: 'Open the console', url: link }],
  };
}

/** A text run, unlike a text block, shows no Markdown, so nothing in an error message becomes a link. */
function line(text: string, style: object, spacing = 'None'): object {
  return { type: 'RichTextBlock', spacing, inlines: [{ type: 'TextRun', text, ...style }] };
}

function lines(text: string): object[] {
  const all = cut(text, most.text, { size: byteSize }).split('\n');
  const shown = all.length > most.lines ? [...all.slice(0, most.lines - 1), '…'] : all;
  return shown.flatMap((one, index) =>
    one === ''
      ? []
      : [line(one, { fontType: 'Monospace' }, (shown[index - 1] ?? '') === '' ? 'Medium' : 'None')],
  );
}
