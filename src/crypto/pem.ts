/**
 * PEM (RFC 7468, and the headers of RFC 1421): reads the variants found in practice, writes the strict form. Reading
 * takes time linear in the text.
 */
import { shortened } from '../base/printable-text.ts';
import { Problem } from '../base/problem.ts';

export type PemBlock = {
  /** The label after BEGIN, such as `CERTIFICATE`. */
  readonly label: string;
  /** The decoded content; ciphertext if a traditional key is encrypted. */
  readonly der: Buffer;
  /** Whether the content needs a password. */
  readonly encrypted: boolean;
};

type Marker = { readonly label: string; readonly start: number; readonly end: number };

// Both ends are bounded, so that the search never backtracks over more than a line.
const marker = /-----(BEGIN|END) ([^\r\n-]{0,64})-----/g;
const newline = /\r\n|\r|\n/;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Labels that matter for an import. Others (parameters, CRLs, PGP) are skipped if they are broken. */
const ofInterest = /(CERTIFICATE|CERTIFICATE REQUEST|KEY|PKCS7|CMS)$/;
/** How to fix a damaged file. */
export const copyAgain = 'Copy the complete file again from its source.';

/** The text in a file: UTF-8, or UTF-16 as PowerShell writes it, recognized by its byte order mark. */
export function pemText(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.toString('utf16le');
  if (bytes[0] === 0xfe && bytes[1] === 0xff && bytes.length % 2 === 0) {
    return Buffer.from(bytes).swap16().toString('utf16le');
  }
  return bytes.toString('utf8');
}

/**
 * All blocks of a text, in order; text between them is ignored, and a text without blocks gives an empty list. Line
 * endings, byte order marks, spaces around lines and a missing newline between two blocks are tolerated. Throws
 * `invalid_request` if a block with a certificate or key is cut off, has the wrong END line or is not base64; messages
 * call the text `name` and show none of its content.
 */
export function readPemBlocks(text: string, name = 'The text'): PemBlock[] {
  const blocks: PemBlock[] = [];
  let open: Marker | undefined;
  let previousEnd = 0;
  const broken = (at: Marker, what: string) => {
    if (!ofInterest.test(at.label)) return;
    const line = text.slice(0, at.start).split(newline).length;
    throw new Problem('invalid_request', {
      detail: `${name} is damaged: the ${shownLabel(at.label)} block at line ${line} ${what}.`,
      hint: copyAgain,
    });
  };
  for (const match of text.matchAll(marker)) {
    const found = { label: (match[2] ?? '').trim(), start: match.index, end: match.index + match[0].length };
    // A marker in the middle of a line is prose, unless a file without a final newline was concatenated with another.
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

/** One block in the strict form of RFC 7468 §3: 64 columns, LF, and a final newline. */
export function encodePem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** A label for a message: as it is if it is like those of RFC 7468, otherwise without control characters and cut. */
export function shownLabel(label: string): string {
  return /^[A-Z0-9 ]*$/.test(label) ? label : shortened(label, 40);
}

/** Whether there is only white space, including the byte order mark, between the index and a newline or `least`. */
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
