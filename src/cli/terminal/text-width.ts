/**
 * How many columns of a terminal a text takes, and texts cut to fit: wide characters take two columns, combining ones
 * none.
 */

/** Text in which each character takes one column; most cells are, and need no segmentation. */
const plain = /^[\u0020-\u007e]*$/;

/** Wide and fullwidth characters (Unicode TR11), and emoji. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]|\ufe0f/u;

const invisible = /^[\p{Mark}\p{Format}]+$/u;

const ellipsis = '…';

let segmenter: Intl.Segmenter | undefined;

/** The columns that the text takes. It must not contain control characters. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const character of characters(text)) width += widthOfCharacter(character);
  return width;
}

/** The text, or its beginning with an ellipsis, so that it takes at most `width` columns. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = width - ellipsis.length;
  for (const character of characters(text)) {
    left -= widthOfCharacter(character);
    if (left < 0) break;
    kept += character;
  }
  return kept + ellipsis;
}

/** Pads the text with spaces to `width` columns. */
export function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

function* characters(text: string): Generator<string> {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  for (const { segment } of segmenter.segment(text)) yield segment;
}

function widthOfCharacter(character: string): 0 | 1 | 2 {
  if (wide.test(character)) return 2;
  return invisible.test(character) ? 0 : 1;
}
