// Where a thread writes down what it is in the middle of. See Journal and Heap.

/** A block on its way from one list to another. */
export const HAND = 0;
/** A chain of free blocks on its way between magazine and depot. */
export const CHAIN = 1;
/** A page that is becoming a slab, and the first of its blocks that is on no list. */
export const PAGE = 2;
export const PROGRESS = 3;
/** A list of deferred blocks that is being taken over. */
export const LIST = 4;
/** How far an update is. */
export const PHASE = 5;
/** Words of its stores, and where they are. */
export const STORES = 6;
export const STORES_AT = 7;
/** Words that are odd meanwhile: the first, one past the last (0: none), from one to the next. */
export const RANGE_AT = 8;
export const RANGE_END = 9;
export const RANGE_STEP = 10;
/** What watchers of the structure that is being written sleep on; 0 when they have been told. */
export const WATCHED = 11;
/** The locks of structures that the thread may have. */
export const LOCKS = 16;
export const MOST_LOCKS = 32;
/** Words before the stores. */
export const HAND_WORDS = 48;
