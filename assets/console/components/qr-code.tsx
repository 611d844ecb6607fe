/** A QR code, dark on light in both themes, because cameras expect that. */
import { generate } from 'lean-qr/nano';

/** Modules around the code that must stay empty. */
const quietZone = 4;

export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const code = generate(text);
  const rows = Array.from({ length: code.size }, (_, y) => y);
  const path = rows
    .flatMap((y) => rows.filter((x) => code.get(x, y)).map((x) => `M${x} ${y}h1v1h-1z`))
    .join('');
  const side = code.size + 2 * quietZone;
  return (
    <svg
      class="qr-code"
      role="img"
      aria-label={label}
      viewBox={`${-quietZone} ${-quietZone} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <rect x={-quietZone} y={-quietZone} width={side} height={side} />
      <path d={path} />
    </svg>
  );
}
