/** When V8 collects the garbage of a process that serves for months. */
import { setFlagsFromString } from 'node:v8';

/**
 * Collects when the heap has grown by half, not when it is four times as large, which is worth 70 MB. As an option of
 * the executable, this would cost each start 20 to 60 ms: V8 rejects code that was compiled with other options, so Node
 * would compile its own modules again. Call it once they are loaded.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=50');
}
