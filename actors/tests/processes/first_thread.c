/* A plugin whose first thread ends while another goes on, as POSIX permits: the kernel shows it as a zombie then. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_t first;

static void *go_on(void *line)
{
    pthread_join(first, NULL);
    puts(line);
    fflush(stdout);
    for (;;)
        pause();
}

int main(int count, char **arguments)
{
    pthread_t other;
    first = pthread_self();
    if (count != 2 || pthread_create(&other, NULL, go_on, arguments[1]) != 0)
        return 1;
    pthread_exit(NULL);
}
