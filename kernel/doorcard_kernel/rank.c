/* The loops of services/game/ranking/batch.py: hands are rows of cards, a byte each, 0..51; what a
 * card adds and what a sum means come in tables. No index leaves its table, whatever the cards. */
#include <stddef.h>
#include <stdint.h>

#define CARDS 52
#define AHEAD 64

struct by_sum {
    const uint64_t *keys;      /* by card: its face, and above it a counter of its suit */
    const uint64_t *held;      /* by card: its bit of 4 x 13, or a count of wild cards above them */
    const uint16_t *classes;   /* by sum of faces */
    const uint16_t *flushes;   /* by wild cards, 0 to 4, and 13 bits of ranks */
    uint64_t entries;          /* of `classes` */
    uint64_t start;            /* what a sum of keys begins with */
    uint64_t face_mask;
    uint64_t flush_bits;
};

static uint16_t best_flush(uint64_t held, const uint16_t *flushes)
{
    uint16_t best = 0;
    uint64_t wild = held >> 52;
    for (int suit = 0; suit < 4 && wild <= 4; suit++) {
        uint16_t flush = flushes[wild << 13 | (held >> 13 * suit & 0x1fff)];
        best = flush > best ? flush : best;
    }
    return best;
}

static inline void sums(const uint8_t *hand, size_t count, size_t cards, const struct by_sum *t,
                        uint16_t *found)
{
    uint64_t keys[AHEAD];
    for (size_t first = 0; first < count; first += AHEAD) {
        size_t block = count - first < AHEAD ? count - first : AHEAD;
        const uint8_t *row = hand + first * cards;
        for (size_t i = 0; i < block; i++) {
            uint64_t key = t->start;
            for (size_t c = 0; c < cards; c++)
                key += t->keys[row[i * cards + c]];
            keys[i] = key;
            /* The table is larger than the nearer caches: ask for its lines ahead of time. */
            __builtin_prefetch(&t->classes[key & t->face_mask]);
        }
        for (size_t i = 0; i < block; i++) {
            uint64_t sum = keys[i] & t->face_mask;
            uint16_t best = sum < t->entries ? t->classes[sum] : 0;
            if (keys[i] & t->flush_bits) {
                uint64_t held = 0;
                for (size_t c = 0; c < cards; c++)
                    held += t->held[row[i * cards + c]];
                uint16_t flush = best_flush(held, t->flushes);
                best = flush > best ? flush : best;
            }
            found[first + i] = best;
        }
    }
}

static inline void unions(const uint8_t *hand, size_t count, size_t cards, const uint16_t *bits,
                          const uint16_t *classes, uint16_t *found)
{
    for (size_t i = 0; i < count; i++, hand += cards) {
        unsigned mask = 0;
        for (size_t c = 0; c < cards; c++)
            mask |= bits[hand[c]];
        found[i] = classes[mask];
    }
}

static int known(const uint8_t *hands, size_t bytes)
{
    uint8_t highest = 0;
    for (size_t i = 0; i < bytes; i++)
        highest = hands[i] > highest ? hands[i] : highest;
    return highest < CARDS;
}

/* Each returns 0, or 1 without an answer where something is no card or no number of cards. */

int doorcard_by_sum(const uint8_t *hands, size_t count, size_t cards, const struct by_sum *tables,
                    uint16_t *found)
{
    if (!known(hands, count * cards))
        return 1;
    switch (cards) { /* A number that the compiler knows lets it unroll. */
    case 5: sums(hands, count, 5, tables, found); return 0;
    case 6: sums(hands, count, 6, tables, found); return 0;
    case 7: sums(hands, count, 7, tables, found); return 0;
    default: return 1;
    }
}

int doorcard_by_union(const uint8_t *hands, size_t count, size_t cards, const uint16_t *bits,
                      const uint16_t *classes, uint16_t *found)
{
    if (!known(hands, count * cards))
        return 1;
    switch (cards) {
    case 5: unions(hands, count, 5, bits, classes, found); return 0;
    case 6: unions(hands, count, 6, bits, classes, found); return 0;
    case 7: unions(hands, count, 7, bits, classes, found); return 0;
    default: return 1;
    }
}
