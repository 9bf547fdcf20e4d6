// What a grace period needs to know about readers, however it finds out.

/**
 * Finds out when the readers of a period have all passed a quiescent state.
 * Nothing above this folder can tell which detector is in use.
 */
export interface Detector {
  /**
   * Whether every reader that was online when the sequence moved to a value
   * has been offline or has announced that value since.
   *
   * @param sequence The value.
   * @returns `true` once that is so; it stays so.
   */
  passed(sequence: number): boolean;

  /**
   * Calls back for every reader that a period still waits for.
   *
   * @param sequence The value to which the sequence moved when it began.
   * @param visit Receives the reader and what it announced last.
   */
  blocking(
    sequence: number,
    visit: (reader: number, announced: number) => void,
  ): void;
}
