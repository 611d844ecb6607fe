/**
 * PEM (RFC 7468, and the headers of RFC 1421): read as people really have it, written in the one strict form. Reading
 * takes time linear in the text, whatever the text is.
 */
import { Problem } from '../base/problem.ts';

export type PemBlock = {
  /** What stands after BEGIN, such as `CERTIFICATE`. */
  readonly label: string;
  /** The decoded content; ciphertext where a traditional key is encrypted. */
  readonly der: Buffer;
  /** Whether the content can be used only with a password. */
  readonly encrypted: boolean;
};

type Marker = { readonly label: string; readonly start: number; readonly end: number };

// Both ends are bounded, so that no text makes the search go back over more than a line.
const marker = /-----(BEGIN|END) ([^\r\n-]{0,64})-----/g;
const newline = /\r\n|\r|\n/;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Blocks that an import could be after. Others (parameters, CRLs, PGP) are passed over when they are broken. */
const ofInterest = /(CERTIFICATE|CERTIFICATE REQUEST|KEY|PKCS7|CMS)$/;
/** What to do about a damaged file. */
export const copyAgain = 'Copy the complete file again from its source.';

/** The text in a file's bytes: UTF-8, or UTF-16 as PowerShell writes it, recognised by its byte order mark. */
export function pemText(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.toString('utf16le');
  if (bytes[0] === 0xfe && bytes[1] === 0xff && bytes.length % 2 === 0) {
    return Buffer.from(bytes).swap16().toString('utf16le');
  }
  return bytes.toString('utf8');
}

/**
 * All blocks of a text, in order; anything between them is ignored, and a text without any gives an empty list. Line
 * ends, byte order marks, spaces around lines and a missing newline between two blocks make no difference. Throws
 * `invalid_request` where a block with a certificate or key is cut off, has another END or is not base64; `name` is what
 * the message calls the text, and the message shows nothing of the content.
 */
export function readPemBlocks(text: string, name = 'The text'): PemBlock[] {
  const blocks: PemBlock[] = [];
  let open: Marker | undefined;
  let previousEnd = 0;
  const broken = (at: Marker, what: string) => {
    if (!ofInterest.test(at.label)) return;
    const line = text.slice(0, at.start).split(newline).length;
    throw new Problem('invalid_request', {
      detail: `${name} is damaged: the ${at.label} block at line ${line} ${what}.`,
      hint: copyAgain,
    });
  };
  for (const match of text.matchAll(marker)) {
    const found = { label: (match[2] ?? '').trim(), start: match.index, end: match.index + match[0].length };
    // A marker in the middle of a line is somebody's prose, unless a file without a last newline was joined to another.
    const counts = open !== undefined || startsLine(text, found.start, previousEnd);
    if (counts) previousEnd = found.end;
    if (match[1] === 'BEGIN') {
      if (open !== undefined) broken(open, 'has no END line');
      open = counts ? found : undefined;
    } else if (open === undefined) {
      if (counts) broken(found, 'has an END line without a BEGIN line');
    } else {
      const block = decode(open.label, text.slice(open.end, found.start));
      if (found.label !== open.label) {
        broken(open, 'has an END line of another type');
        broken(found, 'has an END line without a BEGIN line');
      } else if (block === undefined) broken(open, 'is not base64 text');
      else blocks.push(block);
      open = undefined;
    }
  }
  if (open !== undefined) broken(open, 'has no END line');
  return blocks;
}

/** One block in the strict form of RFC 7468 §3: 64 columns, LF, and a newline at the end. */
export function encodePem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Whether only white space, which includes the byte order mark, stands between the index and a newline or `least`. */
function startsLine(text: string, index: number, least: number): boolean {
  for (let at = index - 1; at >= least; at--) {
    const character = text.charAt(at);
    if (character === '\n' || character === '\r') return true;
    if (character.trim() !== '') return false;
  }
  return true;
}

function decode(label: string, content: string): PemBlock | undefined {
  const lines = content
    .split(newline)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const first = lines.findIndex((line) => !line.includes(':'));
  const digits = lines.slice(first).join('').replace(/\s+/g, '');
  if (digits.length % 4 !== 0 || !base64.test(digits)) return undefined;
  const locked = lines.slice(0, first).some((header) => /^Proc-Type:.*ENCRYPTED/i.test(header));
  return {
    label,
    der: Buffer.from(digits, 'base64'),
    encrypted: locked || label === 'ENCRYPTED PRIVATE KEY',
  };
}
